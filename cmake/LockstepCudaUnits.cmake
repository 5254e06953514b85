# Which kernels are compiled together: most of a kernel's time is its headers, which nvcc parses four times. A folder of
# kernels/ is one unit, so its anonymous namespaces may not share a name.
set(LOCKSTEP_LONG_UNITS norm conv)  # first, so that a build does not end with one alone

# lockstep_cuda_units(<folder> <variable>): <build>/cuda_units/<family>_cuda.cu for each family of the folder, for nvcc
# and for the emulator.
function(lockstep_cuda_units folder variable)
  file(GLOB kernels RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/*_cuda.cu)
  foreach(kernel ${kernels})
    get_filename_component(family ${kernel} DIRECTORY)
    get_filename_component(family ${family} NAME)
    list(APPEND families ${family})
    string(APPEND text_${family} "#include \"${kernel}\"\n")  # no absolute path: clones share what ccache holds
  endforeach()
  list(REMOVE_DUPLICATES families)
  list(REMOVE_ITEM families ${LOCKSTEP_LONG_UNITS})
  foreach(family ${LOCKSTEP_LONG_UNITS} ${families})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda_units/${family}_cuda.cu CONTENT "${text_${family}}" @ONLY)
    list(APPEND units ${PROJECT_BINARY_DIR}/cuda_units/${family}_cuda.cu)
  endforeach()
  set(${variable} ${units} PARENT_SCOPE)
endfunction()
