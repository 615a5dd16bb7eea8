# What is installed for programs that use libflhal (component runtime): the library under its soname only, since wheels keep
# no links; the headers; the CMake package. Relocatable: everything is found relative to the package file.
include(CMakePackageConfigHelpers)

install(FILES $<TARGET_FILE:flhal> DESTINATION lib RENAME libflhal.so.1 COMPONENT runtime)
# Debian ships cJSON as a shared library only; its copy beside libflhal makes the wheel complete (RUNPATH $ORIGIN).
if(NOT CJSON_ARCHIVE MATCHES "\\.a$")
  install(CODE "
    file(REAL_PATH \"${CJSON_ARCHIVE}\" cjson)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib\" TYPE FILE RENAME libcjson.so.1 FILES \"\${cjson}\")"
    COMPONENT runtime)
endif()
install(DIRECTORY include/flhal DESTINATION include COMPONENT runtime FILES_MATCHING PATTERN "*.h")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/flhal-config-version.cmake VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMajorVersion)
install(FILES cmake/flhal-config.cmake ${CMAKE_BINARY_DIR}/flhal-config-version.cmake DESTINATION share/cmake/flhal
  COMPONENT runtime)
install(FILES LICENSE DESTINATION share/flhal COMPONENT runtime)

# The vendor ABI's headers go with the SDK.
install(FILES include/flhal/plugin.h include/flhal/scalars.h include/flhal/status.h include/flhal/ops.h
  DESTINATION include/flhal COMPONENT flhal_sdk)
