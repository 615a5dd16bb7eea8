# find_package(flhal-sdk) where the SDK is a Python package: CMake looks below each folder of PATH, so an active environment
# is enough. This file lies in <environment>/share/cmake/flhal-sdk and goes on to the package itself.
get_filename_component(flhal_sdk_environment "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
file(GLOB flhal_sdk_found LIST_DIRECTORIES false
  "${flhal_sdk_environment}/lib*/python3*/*-packages/flhal_sdk/lib/cmake/flhal-sdk/flhal-sdk-config.cmake"
  "${flhal_sdk_environment}/flhal_sdk/lib/cmake/flhal-sdk/flhal-sdk-config.cmake")   # pip install --target
if(NOT flhal_sdk_found)
  set(flhal-sdk_FOUND FALSE)
  set(flhal-sdk_NOT_FOUND_MESSAGE "flhal-sdk: no package flhal_sdk below ${flhal_sdk_environment}; pip install --force-reinstall flhal-sdk")
  return()
endif()
list(GET flhal_sdk_found 0 flhal_sdk_found)
include("${flhal_sdk_found}")
