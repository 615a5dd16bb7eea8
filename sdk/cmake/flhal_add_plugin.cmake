# flhal_add_plugin(<id> SOURCES a.c ... [PROFILE sync|kernel|async] [MANIFEST file.json.in] [VERSION x.y.z])
#
# Makes the target flhal_plugin_<id>: lib<id>.so with exactly one exported symbol and no undefined ones, its manifest
# <id>.json beside it, both in the top build folder, install rules to <prefix>/<libdir>/flhal_plugins.d (component
# flhal_plugin_<id>), and the test conformance_<id>: flhal-conformance with the profile.
#
#   id        letters, digits, _ - and . : the plugin's id, the same that flhal_plugin_v1 answers.
#   PROFILE   which slots the table has: sync (10), kernel (14) or async (29). It goes into the manifest.
#   MANIFEST  a template; @FLHAL_PLUGIN_ID@, @FLHAL_PLUGIN_LIBRARY@, @FLHAL_PLUGIN_VERSION@, @FLHAL_PLUGIN_PROFILE@ and
#             @FLHAL_PLUGIN_ABI_MAJOR@ / _MINOR@ are filled in. Left out: a standard one.
#   VERSION   of the plugin; PROJECT_VERSION when left out.
# The sources see FLHAL_PLUGIN_ID and FLHAL_PLUGIN_VERSION as strings, so that code and manifest cannot differ.
# FLHAL_PLUGIN_FOLDER and FLHAL_PLUGIN_FILE_PREFIX, set before the call, move the files and rename the library.
# Afterwards the target takes target_link_libraries() and all the rest as usual.
include_guard(GLOBAL)
include(GNUInstallDirs)

set(FLHAL_SDK_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")  # every folder sees it, whoever included this first

function(flhal_add_plugin id)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PROFILE;MANIFEST;VERSION" "SOURCES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "flhal_add_plugin(${id}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT id MATCHES "^[A-Za-z0-9_.-]+$")
    message(FATAL_ERROR "flhal_add_plugin(${id}): an id has letters, digits, '_', '-' and '.' only")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "flhal_add_plugin(${id}): SOURCES is empty; name at least one .c or .cc file")
  endif()
  if(NOT arg_PROFILE)
    set(arg_PROFILE sync)
  endif()
  if(NOT arg_PROFILE MATCHES "^(sync|kernel|async)$")
    message(FATAL_ERROR "flhal_add_plugin(${id}): PROFILE ${arg_PROFILE}: valid are sync, kernel and async")
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION ${PROJECT_VERSION})
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION 0.0.0)
  endif()
  if(NOT arg_MANIFEST)
    set(arg_MANIFEST ${FLHAL_SDK_CMAKE_DIR}/plugin.json.in)
  endif()

  set(target flhal_plugin_${id})
  set(folder ${CMAKE_BINARY_DIR})
  if(FLHAL_PLUGIN_FOLDER)
    set(folder ${FLHAL_PLUGIN_FOLDER})
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX lib OUTPUT_NAME ${FLHAL_PLUGIN_FILE_PREFIX}${id} SUFFIX .so
    LIBRARY_OUTPUT_DIRECTORY ${folder}
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE flhal::plugin_headers)
  # One exported symbol keeps two plugins apart that share internal names; no undefined ones means that a missing
  # library shows when linking, not on a user's machine.
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${FLHAL_SDK_CMAKE_DIR}/plugin.map -Wl,-z,defs -Wl,-z,now -Wl,--exclude-libs,ALL)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${FLHAL_SDK_CMAKE_DIR}/plugin.map)
  if(TARGET flhal_flags)  # inside flhal's own tree: its warnings and sanitizers
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:flhal_flags>)
  endif()

  set(FLHAL_PLUGIN_ID ${id})
  set(FLHAL_PLUGIN_LIBRARY lib${FLHAL_PLUGIN_FILE_PREFIX}${id}.so)
  set(FLHAL_PLUGIN_VERSION ${arg_VERSION})
  set(FLHAL_PLUGIN_PROFILE ${arg_PROFILE})
  set(FLHAL_PLUGIN_ABI_MAJOR 1)
  set(FLHAL_PLUGIN_ABI_MINOR 0)
  configure_file(${arg_MANIFEST} ${folder}/${id}.json @ONLY)
  target_compile_definitions(${target} PRIVATE FLHAL_PLUGIN_ID="${id}" FLHAL_PLUGIN_VERSION="${arg_VERSION}")

  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/flhal_plugins.d COMPONENT flhal_plugin_${id})
  install(FILES ${folder}/${id}.json DESTINATION ${CMAKE_INSTALL_LIBDIR}/flhal_plugins.d
          COMPONENT flhal_plugin_${id})
  if(TARGET flhal::conformance)  # ctest runs it where the project says enable_testing()
    add_test(NAME conformance_${id} COMMAND flhal::conformance --plugin $<TARGET_FILE:${target}> --profile ${arg_PROFILE})
  endif()
endfunction()
