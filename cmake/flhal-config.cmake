# find_package(flhal): the target flhal::flhal, libflhal with its headers. Plugins are found by the library itself, relative
# to its own file, so a program needs no variable.
include_guard(GLOBAL)
get_filename_component(flhal_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${flhal_prefix}/lib/libflhal.so.1")
  set(flhal_FOUND FALSE)
  set(flhal_NOT_FOUND_MESSAGE "flhal: ${flhal_prefix}/lib/libflhal.so.1 is missing; install the package again")
  return()
endif()
if(NOT TARGET flhal::flhal)
  add_library(flhal::flhal SHARED IMPORTED)
  set_target_properties(flhal::flhal PROPERTIES
    IMPORTED_LOCATION "${flhal_prefix}/lib/libflhal.so.1"
    IMPORTED_SONAME libflhal.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${flhal_prefix}/include")
endif()
