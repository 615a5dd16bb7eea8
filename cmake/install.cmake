# What is installed for programs that use libflhal (component runtime): the library under its soname only, since wheels keep
# no links; the headers; the CMake package. Relocatable: everything is found relative to the package file.
include(CMakePackageConfigHelpers)

install(FILES $<TARGET_FILE:flhal> DESTINATION lib RENAME libflhal.so.1 COMPONENT runtime)
# Debian ships cJSON and libuv as shared libraries (libuv's archive is not position independent); their copies beside libflhal
# make the wheel complete (RUNPATH $ORIGIN). flhal-conformance of the SDK has copies of its own: it needs no libflhal.
foreach(library ${CJSON_ARCHIVE} ${UV_LIBRARY})
  if(NOT library MATCHES "\\.a$")
    file(REAL_PATH ${library} real)
    execute_process(COMMAND objdump -p ${real} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "SONAME +([^ \n]+)" _ "${headers}")
    foreach(component IN ITEMS runtime flhal_sdk)
      install(FILES ${real} DESTINATION lib RENAME ${CMAKE_MATCH_1} COMPONENT ${component})
    endforeach()
  endif()
endforeach()
install(DIRECTORY include/flhal DESTINATION include COMPONENT runtime FILES_MATCHING PATTERN "*.h")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/flhal-config-version.cmake VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMajorVersion)
install(FILES cmake/flhal-config.cmake ${CMAKE_BINARY_DIR}/flhal-config-version.cmake DESTINATION share/cmake/flhal
  COMPONENT runtime)
configure_file(cmake/flhal.pc.in ${CMAKE_BINARY_DIR}/flhal.pc @ONLY)
configure_file(cmake/flhal-sdk.pc.in ${CMAKE_BINARY_DIR}/flhal-sdk.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/flhal.pc DESTINATION lib/pkgconfig COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/flhal-sdk.pc DESTINATION lib/pkgconfig COMPONENT flhal_sdk)
install(FILES LICENSE DESTINATION share/flhal COMPONENT runtime)
install(DIRECTORY examples/c examples/cpp DESTINATION share/flhal/examples COMPONENT runtime)

# The vendor ABI's headers go with the SDK.
install(FILES include/flhal/plugin.h include/flhal/scalars.h include/flhal/status.h include/flhal/ops.h
  include/flhal/x_module_binary.h
  DESTINATION include/flhal COMPONENT flhal_sdk)
