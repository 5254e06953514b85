# Helpers for the targets of this project.
add_library(lockstep_options INTERFACE)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR})
# No contraction: a product and a sum round twice on every processor, so all levels give the same bits.
set(host_options -Wall -Wextra -Wshadow -Wconversion -ffp-contract=off -fno-math-errno
  # GCC 12 warns about its own std::string (PR 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # a joined source looks to it like a header
if(LOCKSTEP_WERROR)
  list(APPEND host_options -Werror)
endif()
target_compile_options(lockstep_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${host_options}>")
if(LOCKSTEP_SANITIZE)
  set(checks -UNDEBUG -g1 -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -fno-sanitize=null,vptr,object-size,pointer-overflow  # a third of a build, for what AddressSanitizer reports
    $<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=500>  # calls compile faster than checks
    # -O0 compiles in half the time; GCC 12 warns of its own std::regex at -O1 (PR 105562)
    $<IF:$<STREQUAL:$<TARGET_PROPERTY:NAME>,lockstep_trainers>,-O0,-O1>)
  target_compile_options(lockstep_options INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_UNCHECKED>>>:${checks}>")
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

set(LOCKSTEP_FMA -mfma)  # for tests alone, where this machine has it

# lockstep_for_shared(<targets>...): their objects become part of the shared library too, which shows the symbols of
# public headers alone.
function(lockstep_for_shared)
  set_target_properties(${ARGN} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# What is compiled only with a part; without it <part>_absent.cpp is.
set(LOCKSTEP_CUDA_SOURCES "core/cuda/")
set(LOCKSTEP_CUDNN_SOURCES "(kernels|trainers|inspect|emulation|emulated_train)/.*cudnn[a-z_]*(/|\\.cpp)")
set(LOCKSTEP_CUBLASLT_SOURCES "(kernels|emulation|emulated_train)/.*cublaslt[a-z_]*(/|\\.cpp)")
set(LOCKSTEP_NCCL_SOURCES "(comm|emulation|emulated_train)/.*nccl[a-z_]*(/|\\.cpp)")
set(LOCKSTEP_MPI_SOURCES "comm/messages/mpi_(session|transport)\\.cpp")
set(LOCKSTEP_ONEDNN_SOURCES "kernels/.*(_onednn\\.cpp|/onednn/)")
set(LOCKSTEP_CODECS_SOURCES "data/codecs/")
set(LOCKSTEP_EIGEN_SOURCES "nn/eigenpairs\\.cpp")

# What most sources include, compiled once: half of a small file's compilation is these headers. A target of its own,
# since whatever changes how they are compiled has all other sources compiled again.
file(CONFIGURE OUTPUT common_headers.cpp CONTENT "// Its headers are what counts.\n")
add_library(lockstep_common_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/common_headers.cpp)
lockstep_for_shared(lockstep_common_headers)
target_link_libraries(lockstep_common_headers PRIVATE lockstep_options fmt::fmt)
target_precompile_headers(lockstep_common_headers PRIVATE <algorithm> <array> <atomic> <cmath> <cstring> <exception>
  <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view> <tuple>
  <unordered_map> <utility> <vector> <fmt/format.h>)

# lockstep_parts(<sources> <of parts>): drops the sources of parts that this build lacks, and the absences of those that
# it has. Sets <of parts> to the sources that are left of both kinds.
function(lockstep_parts sources_name parts_name)
  set(sources ${${sources_name}})
  set(of_parts "")
  foreach(part CUDA CUDNN CUBLASLT NCCL MPI ONEDNN CODECS EIGEN)
    string(TOLOWER "/${part}_absent\\.cpp$" absent)
    set(mine ${sources})
    list(FILTER mine INCLUDE REGEX "/(${LOCKSTEP_${part}_SOURCES})|${absent}")
    list(REMOVE_ITEM sources ${mine} "")
    if(LOCKSTEP_HAS_${part})
      list(FILTER mine EXCLUDE REGEX "${absent}")
    else()
      list(FILTER mine INCLUDE REGEX "${absent}")
    endif()
    list(APPEND of_parts ${mine})
  endforeach()
  set(${sources_name} ${sources} ${of_parts} PARENT_SCOPE)
  set(${parts_name} ${of_parts} PARENT_SCOPE)
endfunction()

# lockstep_library(<folder> [PUBLIC libs...] [PRIVATE libs...] [PARTS libs...]): one static library a folder. Programs
# (<name>_main.cpp) stay out. <op>_cpu.cpp files are compiled once for each x86-64 level of the build
# (kernels/support/isa.h). Only sources of parts see PARTS and NVIDIA's headers, so builds share the other objects.
function(lockstep_library folder)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;PARTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  lockstep_parts(sources of_parts)
  set(isa_sources ${sources})
  list(REMOVE_ITEM sources ${of_parts} "")
  list(FILTER sources EXCLUDE REGEX "_(cpu|main)\\.cpp$")
  list(FILTER isa_sources INCLUDE REGEX "_cpu\\.cpp$")
  add_library(lockstep_${folder} STATIC ${sources})
  lockstep_for_shared(lockstep_${folder})
  target_link_libraries(lockstep_${folder} PUBLIC lockstep_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE}
    INTERFACE "$<LINK_ONLY:${ARG_PARTS}>")
  target_precompile_headers(lockstep_${folder} REUSE_FROM lockstep_common_headers)
  if(of_parts)
    add_library(lockstep_${folder}_parts OBJECT ${of_parts})
    lockstep_for_shared(lockstep_${folder}_parts)
    target_link_libraries(lockstep_${folder}_parts PRIVATE lockstep_options ${ARG_PUBLIC} ${ARG_PARTS})
    target_include_directories(lockstep_${folder}_parts SYSTEM PRIVATE ${LOCKSTEP_VENDOR_INCLUDES})
    target_precompile_headers(lockstep_${folder}_parts REUSE_FROM lockstep_common_headers)
    target_sources(lockstep_${folder} PRIVATE $<TARGET_OBJECTS:lockstep_${folder}_parts>)
  endif()
  if(isa_sources)
    foreach(level ${LOCKSTEP_LEVELS})
      set(objects lockstep_${folder}_v${level})
      add_library(${objects} OBJECT ${isa_sources})
      lockstep_for_shared(${objects})
      target_link_libraries(${objects} PRIVATE lockstep_options ${ARG_PUBLIC})
      target_compile_definitions(${objects} PRIVATE LS_ISA=${level})
      target_compile_options(${objects} PRIVATE
        $<$<BOOL:${LOCKSTEP_X86}>:-march=x86-64-v${level}> $<$<CONFIG:Release>:-O3>
        $<$<EQUAL:${level},4>:-mprefer-vector-width=512>)
      if(NOT level IN_LIST LOCKSTEP_SANITIZED_LEVELS)  # then these are the objects of a release build
        set_target_properties(${objects} PROPERTIES LOCKSTEP_UNCHECKED ON)
      endif()
      target_sources(lockstep_${folder} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
  endif()
endfunction()

# lockstep_program(<folder> <name>): bin/<name> from <folder>/<name>_main.cpp.
function(lockstep_program folder name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/${folder}/${name}_main.cpp)
  target_link_libraries(${name} PRIVATE lockstep_${folder})
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)  # the same file once installed
endfunction()
