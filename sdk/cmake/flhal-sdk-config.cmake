# find_package(flhal-sdk): the vendor ABI's headers (target flhal::plugin_headers), flhal_add_plugin(), and the program
# flhal-conformance (target flhal::conformance). A plugin does not link libflhal, so this package needs no other.
include_guard(GLOBAL)

get_filename_component(flhal_sdk_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_path(FLHAL_SDK_INCLUDE_DIR flhal/plugin.h
  HINTS "${flhal_sdk_prefix}/include" "${flhal_sdk_prefix}/../include" NO_DEFAULT_PATH)
if(NOT FLHAL_SDK_INCLUDE_DIR)
  set(flhal-sdk_FOUND FALSE)
  set(flhal-sdk_NOT_FOUND_MESSAGE
    "flhal-sdk: flhal/plugin.h is not in ${flhal_sdk_prefix}/include; install the headers (component flhal_headers)")
  return()
endif()

if(NOT TARGET flhal::plugin_headers)
  add_library(flhal::plugin_headers INTERFACE IMPORTED)
  set_target_properties(flhal::plugin_headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${FLHAL_SDK_INCLUDE_DIR}")
endif()
if(NOT TARGET flhal::conformance AND EXISTS "${flhal_sdk_prefix}/bin/flhal-conformance")
  add_executable(flhal::conformance IMPORTED)
  set_target_properties(flhal::conformance PROPERTIES IMPORTED_LOCATION "${flhal_sdk_prefix}/bin/flhal-conformance")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/flhal_add_plugin.cmake")
