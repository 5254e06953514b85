# lockstep_vendor(<PART> <header> <soname> <without>): sets LOCKSTEP_HAS_<PART> where NVIDIA's header and library are in
# the toolkit, in Python's packages for its CUDA, or in the system. Else the build says what follows: <without>.
# Appends to LOCKSTEP_VENDOR_INCLUDES and, for programs to find the library when they need it, LOCKSTEP_VENDOR_RPATHS.
function(lockstep_vendor part header soname without)
  set(LOCKSTEP_${part} AUTO CACHE STRING "AUTO, ON or OFF: ${soname}, opened when it is first needed")
  find_path(${part}_INCLUDE_DIR ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS} ${nvidia_packages} PATH_SUFFIXES include)
  find_library(${part}_LIBRARY ${soname} HINTS ${${part}_INCLUDE_DIR}/../lib ${CUDAToolkit_LIBRARY_DIR}
    ${nvidia_packages} PATH_SUFFIXES lib)
  if(LOCKSTEP_${part} AND ${part}_INCLUDE_DIR AND ${part}_LIBRARY)
    message(STATUS "${part}: ${${part}_LIBRARY}")
    get_filename_component(folder ${${part}_LIBRARY} DIRECTORY)
    set(LOCKSTEP_HAS_${part} ON PARENT_SCOPE)
    set(LOCKSTEP_VENDOR_INCLUDES ${LOCKSTEP_VENDOR_INCLUDES} ${${part}_INCLUDE_DIR} PARENT_SCOPE)
    set(LOCKSTEP_VENDOR_RPATHS ${LOCKSTEP_VENDOR_RPATHS} LINKER:-rpath,${folder} PARENT_SCOPE)
  elseif(LOCKSTEP_${part} AND NOT LOCKSTEP_${part} STREQUAL "AUTO")
    message(FATAL_ERROR "LOCKSTEP_${part}=ON, but ${header} or ${soname} was not found: set ${part}_INCLUDE_DIR and "
      "${part}_LIBRARY")
  else()
    message(STATUS "Left out: ${part}, so ${without}")
  endif()
endfunction()
