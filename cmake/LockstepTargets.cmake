# Helpers for the targets of this project.

add_library(lockstep_options INTERFACE)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR})
# No contraction: a product and a sum round twice on every x86-64 level, so all levels give the same bits.
set(host_options -Wall -Wextra -Wshadow -Wconversion -ffp-contract=off -fno-math-errno
  # GCC 12 warns about its own std::string (PR 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # a joined source looks to it like a header
if(LOCKSTEP_WERROR)
  list(APPEND host_options -Werror)
endif()
target_compile_options(lockstep_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${host_options}>")
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_options INTERFACE
    -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # In GoogleTest's macros UBSan doubles the time of a build.
    $<$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_IS_TEST>>:-fno-sanitize=undefined>)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

# What is compiled only with a part; without it <part>_absent.cpp is.
set(LOCKSTEP_CUDA_SOURCES "core/cuda/|kernels/.*cublaslt[a-z_]*(/|\\.cpp)")
set(LOCKSTEP_CUDNN_SOURCES "kernels/.*cudnn[a-z_]*(/|\\.cpp)")
set(LOCKSTEP_MPI_SOURCES "comm/messages/mpi_(session|transport)\\.cpp")
set(LOCKSTEP_ONEDNN_SOURCES "kernels/.*(_onednn\\.cpp|/onednn/)")
set(LOCKSTEP_CODECS_SOURCES "data/codecs/")

# What most sources include, compiled once: half of a small file's compilation is these headers. A target of its own,
# since whatever changes how they are compiled has all other sources compiled anew.
file(CONFIGURE OUTPUT common_headers.cpp CONTENT "// Its headers are what counts.\n")
add_library(lockstep_common_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/common_headers.cpp)
target_link_libraries(lockstep_common_headers PRIVATE lockstep_options fmt::fmt)
target_precompile_headers(lockstep_common_headers PRIVATE <algorithm> <array> <atomic> <cmath> <cstring> <exception>
  <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view> <tuple>
  <unordered_map> <utility> <vector> <fmt/format.h>)

# lockstep_library(<folder> [PUBLIC libs...] [PRIVATE libs...] [APART files...]): one static library a folder. Programs
# (<name>_main.cpp) and the files of APART stay out. <op>_cpu.cpp files are compiled once for each x86-64 level of the
# build (kernels/support/isa.h).
function(lockstep_library folder)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;APART" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  foreach(part CUDA CUDNN MPI ONEDNN CODECS)
    if(LOCKSTEP_HAS_${part})
      string(TOLOWER ${part} name)
      list(FILTER sources EXCLUDE REGEX "/${name}_absent\\.cpp$")
    else()
      list(FILTER sources EXCLUDE REGEX "/(${LOCKSTEP_${part}_SOURCES})")
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${ARG_APART} "")
  set(isa_sources ${sources})
  list(FILTER sources EXCLUDE REGEX "_(cpu|main)\\.cpp$")
  list(FILTER isa_sources INCLUDE REGEX "_cpu\\.cpp$")
  add_library(lockstep_${folder} STATIC ${sources})
  target_link_libraries(lockstep_${folder} PUBLIC lockstep_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  target_precompile_headers(lockstep_${folder} REUSE_FROM lockstep_common_headers)
  if(isa_sources)
    foreach(level ${LOCKSTEP_LEVELS})
      set(objects lockstep_${folder}_v${level})
      add_library(${objects} OBJECT ${isa_sources})
      target_link_libraries(${objects} PRIVATE lockstep_options ${ARG_PUBLIC})
      target_compile_definitions(${objects} PRIVATE LS_ISA=${level})
      target_compile_options(${objects} PRIVATE
        -march=x86-64-v${level} $<$<CONFIG:Release>:-O3> $<$<EQUAL:${level},4>:-mprefer-vector-width=512>)
      target_sources(lockstep_${folder} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
  endif()
endfunction()

# lockstep_program(<name>): bin/<name> from trainers/<name>_main.cpp.
function(lockstep_program name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/trainers/${name}_main.cpp)
  target_link_libraries(${name} PRIVATE lockstep_trainers)
endfunction()
