# CUDA: AUTO takes it where nvcc is found. Kernels are kernels/<family>/*_cuda.cu; core/cuda is the runtime layer.
set(LOCKSTEP_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
set(LOCKSTEP_HAS_CUDA OFF)
if(LOCKSTEP_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "SASS and PTX for these")
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)  # its packages may hold CUDA
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(LOCKSTEP_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin)
    if(Python3_FOUND AND NOT LOCKSTEP_NVCC)
      execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/nvidia_packages.py nvcc
        OUTPUT_VARIABLE LOCKSTEP_NVCC OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
  endif()
  set(nvcc ${CMAKE_CUDA_COMPILER} ${LOCKSTEP_NVCC})
  set(version 0)
  set(why "no nvcc was found on PATH, in /usr/local/cuda or in Python's packages")
  if(nvcc)
    list(GET nvcc 0 nvcc)
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCH "release ([0-9.]+)" said "${said}")
    set(version "${CMAKE_MATCH_1}")
    set(why "${nvcc} is of CUDA '${version}', and 12.4 is the oldest that compiles the kernels")
  endif()
  set(try "  try: install the CUDA toolkit 12.4 or newer, or pip install nvidia-cuda-nvcc nvidia-cuda-cccl nvidia-nvtx")
  if(version VERSION_GREATER_EQUAL 12.4)
    set(LOCKSTEP_HAS_CUDA ON)
  elseif(NOT LOCKSTEP_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "LOCKSTEP_CUDA=ON, but CUDA cannot be built\n  why: ${why}\n${try}")
  elseif(nvcc)
    message(WARNING "CUDA is left out\n  why: ${why}\n${try}")
  endif()
endif()
message(STATUS "CUDA: ${LOCKSTEP_HAS_CUDA}")
if(NOT LOCKSTEP_HAS_CUDA)
  return()
endif()

set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "nvcc")
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(LOCKSTEP_CUDART CUDA::cudart)
if(CMAKE_CUDA_COMPILER MATCHES "^(.*/nvidia/cu[0-9]+)/bin/nvcc$")  # without the name libcudart.so
  file(GLOB cudart ${CMAKE_MATCH_1}/lib/libcudart.so.*)
  set(CUDA_CUDART ${cudart} CACHE FILEPATH "for find_package alone")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(LOCKSTEP_CUDART CUDA::cudart_static)
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.4 REQUIRED)
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
