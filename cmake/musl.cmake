# Toolchain: musl as Debian's musl-tools has it, with the kernel's headers beside musl's own. There
# is no C++ library for it: the operators' part is compiled as always and links to nothing.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
set(HAKMEM_KERNEL_HEADERS /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include -idirafter ${HAKMEM_KERNEL_HEADERS}")
