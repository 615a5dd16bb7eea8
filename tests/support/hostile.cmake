# The hostile plugin kit: one library per kind, in <build>/tests/hostile.d. See hostile.cc.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/hostile.cc lines REGEX "^  [a-z_0-9]+,( [a-z_0-9]+,)*$|^  [a-z_0-9, ]+,$")
set(FLHAL_HOSTILE_KINDS "")
foreach(line IN LISTS lines)
  string(REGEX MATCHALL "[a-z][a-z_0-9]+" kinds "${line}")
  list(APPEND FLHAL_HOSTILE_KINDS ${kinds})
endforeach()

add_library(flhal_hostile_absent SHARED ${CMAKE_CURRENT_LIST_DIR}/hostile_absent.c)
set_target_properties(flhal_hostile_absent PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/absent.d
  C_VISIBILITY_PRESET default)

add_custom_target(flhal_hostile)
foreach(kind IN LISTS FLHAL_HOSTILE_KINDS)
  add_library(flhal_hostile_${kind} MODULE EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/hostile.cc)
  target_compile_definitions(flhal_hostile_${kind} PRIVATE KIND=${kind} KIND_${kind}=1)
  target_include_directories(flhal_hostile_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(flhal_hostile_${kind} PRIVATE -O0 -g0 -w)
  target_link_libraries(flhal_hostile_${kind} PRIVATE flhal_flags)
  set_target_properties(flhal_hostile_${kind} PROPERTIES PREFIX lib OUTPUT_NAME flhal_plugin_${kind}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/hostile.d SKIP_BUILD_RPATH ON)
  if(kind STREQUAL "missing_dependency")
    target_link_libraries(flhal_hostile_${kind} PRIVATE flhal_hostile_absent)
  endif()
  add_dependencies(flhal_hostile flhal_hostile_${kind})
endforeach()
