# out/musl: the library and what of its tests asks for nothing of glibc, with musl as C library.
set(CMAKE_TOOLCHAIN_FILE ${CMAKE_CURRENT_LIST_DIR}/../musl.cmake CACHE FILEPATH "")
set(HAKMEM_PRESET musl CACHE STRING "")
set(HAKMEM_FLAGS -O1 -g CACHE STRING "")
set(HAKMEM_CHECK_LEVEL 2 CACHE STRING "")
set(HAKMEM_TESTS model race CACHE STRING "")
