# out/coverage: the tests that count which lines of src/ they run (./hak coverage).
set(HAKMEM_PRESET coverage CACHE STRING "")
set(HAKMEM_FLAGS -O1 -g --coverage -fprofile-update=atomic CACHE STRING "")
set(HAKMEM_CHECK_LEVEL 2 CACHE STRING "")
set(HAKMEM_SHIP OFF CACHE BOOL "")
set(HAKMEM_TESTS unit model race attack CACHE STRING "")
