# out/clang: what release is, by clang, whose newest debugging information valgrind may not know.
set(CMAKE_TOOLCHAIN_FILE ${CMAKE_CURRENT_LIST_DIR}/../clang.cmake CACHE FILEPATH "")
set(HAKMEM_PRESET clang CACHE STRING "")
set(HAKMEM_FLAGS -O2 -g1 -gdwarf-4 CACHE STRING "")
set(HAKMEM_TESTS attack install preload CACHE STRING "")
