# The project's helper functions: swaplab_module() for libraries, swaplab_test() for test programs.

add_library(swaplab_warnings INTERFACE)
set(swaplab_warning_options
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual $<$<BOOL:${SWAPLAB_WERROR}>:-Werror>)
# GCC 12 sees overlaps and overruns in inlined std::string code that are not there (GCC PR105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND swaplab_warning_options -Wno-restrict -Wno-array-bounds
    -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# Not for .cu files: what nvcc makes of them for the host compiler is not warning-free.
target_compile_options(swaplab_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${swaplab_warning_options}>")
# Bits are promised across machines: no contraction of a*b+c behind the source's back.
add_compile_options(-ffp-contract=off)
# Call sites in messages name files of this project, not of the machine that built it.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(SWAPLAB_SANITIZE)
  add_compile_options(-fsanitize=${SWAPLAB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_compile_options(-Wno-maybe-uninitialized)  # g++ 12 says it of std::regex when instrumented
  add_link_options(-fsanitize=${SWAPLAB_SANITIZE})
endif()
if(SWAPLAB_MUTANTS)
  add_compile_definitions(SWAPLAB_MUTANTS)
endif()

# swaplab_quicken(TARGET): joins its sources, and precompiles the headers that nearly all of them read.
function(swaplab_quicken target)
  if(SWAPLAB_QUICK_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory>
      <optional> <span> <string> <string_view> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
    # lets ccache see through it
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endfunction()

# swaplab_module(NAME PUBLIC_HEADERS h... SOURCES s... DEPENDS t... PRIVATE_DEPENDS t...
#                HEADER_ONLY_DEPENDS t...)
# A static library swaplab_NAME (alias swaplab::NAME) that sees its own folder, its include folder
# and what it depends on, nothing else. Subfolders add sources with target_sources(). It is installed
# and exported; HEADER_ONLY_DEPENDS are used by its sources alone, so that consumers of the installed
# library need not have them.
function(swaplab_module name)
  cmake_parse_arguments(ARG "" ""
    "PUBLIC_HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS;HEADER_ONLY_DEPENDS" ${ARGN})
  set(target swaplab_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(swaplab::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON
    POSITION_INDEPENDENT_CODE ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${ARG_PUBLIC_HEADERS})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS}
    $<BUILD_INTERFACE:swaplab_warnings>)
  foreach(library IN LISTS ARG_HEADER_ONLY_DEPENDS)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  swaplab_quicken(${target})
  install(TARGETS ${target} EXPORT swaplab_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# swaplab_test(NAME SOURCES s... DEPENDS t... LABELS l... [TIMEOUT seconds] [PRIVATE_OF dir...])
# One test program and its ctest entry; run it from the root of the tree. PRIVATE_OF lets it see a module's private headers.
# Label "sanitized": it manages memory or reads files of others, so CI runs it under AddressSanitizer, too.
function(swaplab_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS;LABELS;PRIVATE_OF" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest_main GTest::gmock
    swaplab_warnings)
  foreach(dir IN LISTS ARG_PRIVATE_OF)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/${dir})
  endforeach()
  # Relative to the root of the tree, where tests run: objects are then equal in every checkout and
  # a compiler cache can share them.
  target_compile_definitions(${name} PRIVATE SWAPLAB_TEST_DATA="tests/data" SWAPLAB_SOURCE_DIR=".")
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <gmock/gmock.h> <string> <vector>)
  # lets ccache see through the header
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(sanitized IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY swaplab_sanitized_tests ${name})
  endif()
  if(NOT style IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY swaplab_test_programs $<TARGET_FILE:${name}>)
  endif()
endfunction()
