# cpack -G TGZ: a folder that runs where it is unpacked. cpack -G DEB: a package for the Debian that built it, with the
# dependencies that dpkg-shlibdeps finds. Both hold the programs, the library, its headers and scripts/run.
if(NOT TARGET lockstep_shared)
  return()
endif()

# The folder's own files; train.sh finds bin/ there, and builds nothing.
install(PROGRAMS scripts/run scripts/setup.sh scripts/train.sh DESTINATION scripts COMPONENT folder EXCLUDE_FROM_ALL)
install(FILES scripts/part.sh scripts/restart.sh DESTINATION scripts COMPONENT folder EXCLUDE_FROM_ALL)
install(FILES README.md LICENSE CHANGELOG.md packaging/copyright DESTINATION . COMPONENT folder EXCLUDE_FROM_ALL)
install(DIRECTORY docs DESTINATION . COMPONENT folder EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION . COMPONENT folder EXCLUDE_FROM_ALL)

# Debian's places. lockstep-run finds the programs beside itself.
set(docs ${CMAKE_INSTALL_DATADIR}/doc/lockstep)
install(PROGRAMS scripts/run RENAME lockstep-run DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES scripts/restart.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES packaging/copyright README.md DESTINATION ${docs} COMPONENT debian EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION ${docs} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES packaging/lintian-overrides RENAME lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
  COMPONENT debian EXCLUDE_FROM_ALL)
foreach(pair CHANGELOG.md:changelog.gz packaging/changelog:changelog.Debian.gz)
  string(REPLACE ":" ";" pair ${pair})
  list(POP_FRONT pair from)
  install(CODE "execute_process(COMMAND gzip -9nc \"${PROJECT_SOURCE_DIR}/${from}\" COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${docs}/${pair}\")" COMPONENT debian EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VENDOR Lockstep)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data-parallel training of ConvNets and ResNets")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_PACKAGE_FILE_NAME lockstep-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/same_times.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/package_components.cmake)
file(CONFIGURE OUTPUT package_components.cmake @ONLY CONTENT [[
if(CPACK_GENERATOR STREQUAL "DEB")
  set(own debian)
else()
  set(own folder)
endif()
set(CPACK_INSTALL_CMAKE_PROJECTS)
foreach(component library programs ${own})
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "@PROJECT_BINARY_DIR@" Lockstep ${component} /)
endforeach()
]])

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Lockstep's maintainers <maintainers@lockstep.example>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Trains convolutional networks on several processes or threads.
A run gives the same bits on 1, 2, 4 or 8 of them. The package has the
programs train_convnet, train_resnet and lockstep, the library
liblockstep.so with its C++ headers, and lockstep-run, which starts
ranks by mpirun.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
include(CPack)
