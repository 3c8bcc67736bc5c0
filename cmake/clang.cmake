# Toolchain: clang. `cmake --toolchain cmake/clang.cmake`; Debian 12's clang-14 if it is there.
find_program(HAKMEM_CLANG NAMES clang-14 clang REQUIRED)
find_program(HAKMEM_CLANGXX NAMES clang++-14 clang++ REQUIRED)
set(CMAKE_C_COMPILER ${HAKMEM_CLANG})
set(CMAKE_CXX_COMPILER ${HAKMEM_CLANGXX})
