# CUDA: AUTO takes it where nvcc compiles it. Kernels are kernels/<family>/*_cuda.cu, the runtime layer is core/cuda.
set(LOCKSTEP_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
set(LOCKSTEP_HAS_CUDA OFF)
if(LOCKSTEP_CUDA)
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)  # its packages may hold CUDA
  include(LockstepToolkit)
  lockstep_choose_cuda()
endif()
message(STATUS "CUDA: ${LOCKSTEP_HAS_CUDA}")
if(NOT LOCKSTEP_HAS_CUDA)
  return()
endif()

set(LOCKSTEP_CUDART CUDA::cudart)
if(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Static")
  cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH bin)
  file(GLOB cudart ${bin}/../lib/libcudart.so.*)
  set(CUDA_CUDART ${cudart} CACHE FILEPATH "for find_package alone")
  set(LOCKSTEP_CUDART CUDA::cudart_static)
endif()
enable_language(CUDA)
find_package(CUDAToolkit ${LOCKSTEP_OLDEST_CUDA} REQUIRED)
include(LockstepVendor)
if(Python3_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/nvidia_packages.py
    ${CUDAToolkit_VERSION_MAJOR} OUTPUT_VARIABLE nvidia_packages)
endif()
set(LOCKSTEP_VENDOR_INCLUDES ${CUDAToolkit_INCLUDE_DIRS})
lockstep_vendor(CUDNN cudnn_graph.h libcudnn.so.9 "convolutions are our own kernels")
lockstep_vendor(CUBLASLT cublasLt.h libcublasLt.so.${CUDAToolkit_VERSION_MAJOR} "matrix products are our own kernels")
lockstep_vendor(NCCL nccl.h libnccl.so.2 "gradients between GPUs go over CUDA IPC or through the host")
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
endif()

include(LockstepCudaUnits)

# lockstep_cuda_kernels(<folder> libs...): the folder's *_cuda.cu, joined to units, by nvcc. An executable with the
# property LOCKSTEP_EMULATION gets those units compiled for the host, and no CUDA runtime (tests/emulation).
# No contraction, as on the CPU: the same sums give the same bits.
function(lockstep_cuda_kernels folder)
  lockstep_cuda_units(${folder} units)
  add_library(lockstep_${folder}_cuda STATIC ${units})
  lockstep_for_shared(lockstep_${folder}_cuda)
  target_link_libraries(lockstep_${folder}_cuda PRIVATE lockstep_options lockstep_core ${ARGN}
    INTERFACE lockstep_${folder})  # kernels call what computes shapes there
  target_compile_options(lockstep_${folder}_cuda PRIVATE -fmad=false --expt-relaxed-constexpr
    $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror=all-warnings> -Xcompiler=-Wall,-Wextra)
  # fmt 9 takes nvcc for a compiler without constexpr, and half of it for one with C++20.
  target_compile_definitions(lockstep_${folder}_cuda PRIVATE FMT_USE_CONSTEXPR=1 FMT_CONSTEVAL=)
  set(emulated $<TARGET_PROPERTY:LOCKSTEP_EMULATION>)
  target_link_libraries(lockstep_${folder} PUBLIC
    $<IF:$<BOOL:${emulated}>,lockstep_${folder}_emulated_${emulated},lockstep_${folder}_cuda>)
endfunction()

# lockstep_cuda_runtime(): links what core/cuda calls, and says where programs find NVIDIA's libraries.
function(lockstep_cuda_runtime)
  set(emulated $<TARGET_PROPERTY:LOCKSTEP_EMULATION>)
  target_link_libraries(lockstep_core INTERFACE
    $<LINK_ONLY:$<IF:$<BOOL:${emulated}>,lockstep_emulator_${emulated},${LOCKSTEP_CUDART}>>)
  target_link_options(lockstep_core INTERFACE ${LOCKSTEP_VENDOR_RPATHS})
endfunction()
