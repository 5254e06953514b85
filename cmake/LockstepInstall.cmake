# The library for other people's programs: liblockstep.so, its headers, and the files that find_package(Lockstep) and
# pkg-config read.
if(LOCKSTEP_SANITIZE OR LOCKSTEP_LACKS)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Symbols between "#pragma GCC visibility push(default)" and pop are the library's; all others are hidden.
set(folders core kernels data nn comm engine)
list(TRANSFORM folders PREPEND lockstep_ OUTPUT_VARIABLE parts)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
add_library(lockstep_shared SHARED ${PROJECT_BINARY_DIR}/common_headers.cpp)
target_link_libraries(lockstep_shared PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive ${parts})
set_target_properties(lockstep_shared PROPERTIES OUTPUT_NAME lockstep EXPORT_NAME lockstep VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(lockstep_shared INTERFACE cxx_std_20)
target_link_options(lockstep_shared PRIVATE LINKER:-z,defs LINKER:--gc-sections
  LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/lockstep.map)  # templates of std are nobody's
set_property(TARGET lockstep_shared APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/lockstep.map)

# In the tree headers name each other from its root, installed below lockstep/, where those of engine/ stand first.
set(headers ${PROJECT_BINARY_DIR}/include)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/public_headers.txt)
file(STRINGS cmake/public_headers.txt names)
file(CONFIGURE OUTPUT public_headers.cmake @ONLY CONTENT [[
file(REMOVE_RECURSE "@headers@")
foreach(name @names@)
  file(READ "@PROJECT_SOURCE_DIR@/${name}" text)
  string(REGEX REPLACE "#include \"([a-z_]+/)" "#include \"lockstep/\\1" text "${text}")
  string(REPLACE "lockstep/engine/" "lockstep/" text "${text}")
  string(REGEX REPLACE "^engine/" "" name "${name}")
  file(WRITE "@headers@/lockstep/${name}" "${text}")
endforeach()
file(TOUCH "@headers@.stamp")
]])
add_custom_command(OUTPUT ${headers}.stamp COMMAND ${CMAKE_COMMAND} -P public_headers.cmake
  DEPENDS ${names} ${PROJECT_BINARY_DIR}/public_headers.cmake)
add_custom_target(lockstep_headers ALL DEPENDS ${headers}.stamp)
add_dependencies(lockstep_shared lockstep_headers)
target_include_directories(lockstep_shared INTERFACE $<BUILD_INTERFACE:${headers}>)

install(DIRECTORY ${headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(TARGETS lockstep_shared EXPORT Lockstep LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
install(EXPORT Lockstep FILE LockstepTargets.cmake NAMESPACE Lockstep:: DESTINATION ${package} COMPONENT library)
configure_package_config_file(cmake/LockstepConfig.cmake.in LockstepConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  DESTINATION ${package} COMPONENT library)
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/lockstep.pc.in lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(TARGETS train_convnet train_resnet lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND [[${PROJECT_SOURCE_DIR}/scripts/completions.sh]] [[${CMAKE_RUNTIME_OUTPUT_DIRECTORY}]]
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")" COMPONENT programs)
