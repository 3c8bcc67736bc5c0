# out/arm64: the library and its own tests, cross-compiled, under qemu-user.
# Some of the tests; with HAK_FULL all.
set(CMAKE_TOOLCHAIN_FILE ${CMAKE_CURRENT_LIST_DIR}/../arm64.cmake CACHE FILEPATH "")
set(HAKMEM_PRESET arm64 CACHE STRING "")
set(HAKMEM_FLAGS -O2 -g1 CACHE STRING "")
set(HAKMEM_CHECK_LEVEL 2 CACHE STRING "")
set(HAKMEM_SMALL_WINDOW 1 CACHE STRING "")
set(HAKMEM_TESTS smoke CACHE STRING "" FORCE)
if(DEFINED ENV{HAK_FULL})
  set(HAKMEM_TESTS unit model race attack machines CACHE STRING "" FORCE)
endif()
