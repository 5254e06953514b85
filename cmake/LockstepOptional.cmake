# What a build may lack. AUTO takes what is found, ON demands it; in its place <part>_absent.cpp says what to do.
set(LOCKSTEP_MPI AUTO CACHE STRING "AUTO, ON or OFF: MPI, for several ranks")
set(LOCKSTEP_ONEDNN AUTO CACHE STRING "AUTO, ON or OFF: oneDNN and OpenMP, for training on the CPU")
set(LOCKSTEP_CODECS AUTO CACHE STRING "AUTO, ON or OFF: libjpeg and libpng, for photos")
set(LOCKSTEP_EIGEN AUTO CACHE STRING "AUTO, ON or OFF: Eigen, for whitening layers")

# lockstep_optional(<PART> <condition> libraries...): LOCKSTEP_HAS_<PART> and LOCKSTEP_<PART>_LIBRARIES; without, it is
# among those that LOCKSTEP_LACKS names.
function(lockstep_optional part condition)
  if(LOCKSTEP_${part} AND ${condition})
    set(LOCKSTEP_HAS_${part} ON PARENT_SCOPE)
    set(LOCKSTEP_${part}_LIBRARIES ${ARGN} PARENT_SCOPE)
  elseif(LOCKSTEP_${part} AND NOT LOCKSTEP_${part} STREQUAL "AUTO")
    message(FATAL_ERROR "LOCKSTEP_${part}=ON, but its libraries were not found: scripts/setup.sh installs them")
  else()
    set(LOCKSTEP_LACKS ${LOCKSTEP_LACKS} ${part} PARENT_SCOPE)
    message(STATUS "Left out: ${part}")
  endif()
endfunction()

find_package(MPI QUIET COMPONENTS CXX)
find_package(OpenMP QUIET COMPONENTS CXX)  # oneDNN's thread count is OpenMP's; our code never forks by it
find_package(dnnl 3 CONFIG QUIET)  # Ubuntu 24.04; Debian 12 has 2.6, and each refuses the other's number
if(NOT dnnl_FOUND)
  find_package(dnnl 2.6 CONFIG QUIET)
endif()
find_package(JPEG QUIET)
find_package(PNG QUIET)
find_package(Eigen3 3.3 CONFIG QUIET)
lockstep_optional(MPI MPI_FOUND MPI::MPI_CXX)
# Not OpenMP's target: its flag -fopenmp would keep ccache from sharing objects with builds that lack oneDNN.
lockstep_optional(ONEDNN "dnnl_FOUND;AND;OpenMP_FOUND" DNNL::dnnl ${OpenMP_CXX_LIBRARIES})
lockstep_optional(CODECS "JPEG_FOUND;AND;PNG_FOUND" JPEG::JPEG PNG::PNG)
lockstep_optional(EIGEN Eigen3_FOUND Eigen3::Eigen)
