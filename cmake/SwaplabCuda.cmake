# The CUDA backend, where a toolkit is there to build it: SWAPLAB_HAS_CUDA says so. CUDA is then a
# language of the project. Programs name their runtime library themselves (CUDA::cudart, shared), so
# that the same program runs over the stand-in of sim/cuda/standin by its library path alone.
set(SWAPLAB_CUDA AUTO CACHE STRING
  "Build the CUDA backend: ON, OFF, or AUTO: where a CUDA toolkit is found")
set_property(CACHE SWAPLAB_CUDA PROPERTY STRINGS AUTO ON OFF)
set(swaplab_cuda_version_min 13.0)

# Sets `variable` to what keeps CUDA from being built, or to nothing.
function(swaplab_find_cuda variable)
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(${variable} "no CUDA toolkit found; name one by -DCUDAToolkit_ROOT=DIR" PARENT_SCOPE)
    return()
  endif()
  if(CUDAToolkit_VERSION VERSION_LESS swaplab_cuda_version_min)
    set(${variable} "found CUDA ${CUDAToolkit_VERSION}, but ${swaplab_cuda_version_min} is needed"
      PARENT_SCOPE)
    return()
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "CUDA compiler")
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "Host compiler of nvcc")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${variable} "nvcc of CUDA ${CUDAToolkit_VERSION} does not work with ${CMAKE_CXX_COMPILER}"
      PARENT_SCOPE)
  endif()
endfunction()

set(SWAPLAB_HAS_CUDA OFF)
if(NOT SWAPLAB_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SWAPLAB_CUDA is \"${SWAPLAB_CUDA}\"; it may be AUTO, ON or OFF")
elseif(NOT SWAPLAB_CUDA STREQUAL OFF)
  swaplab_find_cuda(swaplab_no_cuda)
  if(NOT swaplab_no_cuda)
    set(SWAPLAB_HAS_CUDA ON)
  elseif(SWAPLAB_CUDA STREQUAL ON)
    message(FATAL_ERROR "SWAPLAB_CUDA=ON: ${swaplab_no_cuda}; or build without: SWAPLAB_CUDA=OFF")
  else()
    message(STATUS "CUDA backend: off (${swaplab_no_cuda})")
  endif()
endif()

if(SWAPLAB_HAS_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPUs to build kernels for (compute capability)")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake 3.25 does not know how to ask nvcc for C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  # Bits are promised across devices: no contraction of a*b+c in kernels, either.
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-Wall,-Wextra>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${SWAPLAB_WERROR}>>:-Werror=all-warnings>")
  message(STATUS "CUDA backend: on (CUDA ${CUDAToolkit_VERSION}, ${CMAKE_CUDA_ARCHITECTURES})")
endif()

# swaplab_cuda_test(NAME ...): a swaplab_test() that calls CUDA. Its ctest entry runs it over the
# stand-in; another one looks whether the stand-in exports all that it needs.
function(swaplab_cuda_test name)
  swaplab_test(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE CUDA::cudart)
  add_dependencies(${name} swaplab_cudart_standin)
  set_property(TEST ${name} PROPERTY
    ENVIRONMENT LD_LIBRARY_PATH=$<TARGET_FILE_DIR:swaplab_cudart_standin>)
  swaplab_check_standin_exports(${name}_symbols $<TARGET_FILE:${name}>)
endfunction()

function(swaplab_check_standin_exports name program)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DPROGRAM=${program}
    -DSTANDIN=$<TARGET_FILE:swaplab_cudart_standin>
    -P ${PROJECT_SOURCE_DIR}/cmake/SwaplabStandinExports.cmake)
  set_tests_properties(${name} PROPERTIES LABELS "sim;cuda;fast")
endfunction()
