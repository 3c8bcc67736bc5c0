# out/fuzz: the targets of tests/fuzz with clang's libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer (its check of function types needs C++'s runtime).
set(CMAKE_TOOLCHAIN_FILE ${CMAKE_CURRENT_LIST_DIR}/../clang.cmake CACHE FILEPATH "")
set(HAKMEM_PRESET fuzz CACHE STRING "")
set(HAKMEM_FLAGS -O1 -g -fno-omit-frame-pointer
  -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function
  -fno-sanitize-recover=undefined CACHE STRING "")
set(HAKMEM_CHECK_LEVEL 2 CACHE STRING "")
set(HAKMEM_SMALL_WINDOW 1 CACHE STRING "")
set(HAKMEM_SHIP OFF CACHE BOOL "")
set(HAKMEM_TESTS fuzz CACHE STRING "")
