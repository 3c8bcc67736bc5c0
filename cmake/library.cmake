# The allocator, built twice from the same sources: to take malloc's place (hakmem_objects, and what
# is made of it), and under its own names only (hakmem_test), for tests beside libc's malloc.

file(GLOB HAKMEM_SOURCES CONFIGURE_DEPENDS src/*/*.c)
list(REMOVE_ITEM HAKMEM_SOURCES
  ${PROJECT_SOURCE_DIR}/src/os/own_begin.c ${PROJECT_SOURCE_DIR}/src/os/own_end.c)

# The hot path in assembly, where there is one; not for sanitizers, which see no order through it.
set(assembly)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
  set(assembly x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(assembly aarch64)
endif()
if(assembly AND NOT HAKMEM_FLAGS MATCHES "-fsanitize")
  enable_language(ASM)
  file(GLOB hot CONFIGURE_DEPENDS src/*/*_${assembly}.S)
  list(APPEND HAKMEM_SOURCES ${hot})
  list(REMOVE_ITEM HAKMEM_SOURCES ${PROJECT_SOURCE_DIR}/src/api/malloc.c
    ${PROJECT_SOURCE_DIR}/src/heap/cpu_cache_none.c)
endif()

# bad_alloc passes through operator new.
set_source_files_properties(src/api/malloc.c src/api/operators.c src/api/glibc.c
  src/api/cpp_runtime.c src/api/long.c src/api/replaced.c src/api/token.c
  PROPERTIES COMPILE_OPTIONS -fexceptions)

# The linker keeps the order of sources (cmake/link_order.txt).
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/link_order.txt)
file(STRINGS cmake/link_order.txt order REGEX "^[^#]")
list(TRANSFORM order PREPEND ${PROJECT_SOURCE_DIR}/src/)
list(FIND order ${PROJECT_SOURCE_DIR}/src/... others_at)
set(ordered)
set(last)
foreach(source ${order})
  list(FIND order ${source} at)
  if(at EQUAL others_at)
    continue()
  elseif(NOT EXISTS ${source})
    message(FATAL_ERROR "cmake/link_order.txt names ${source}, which does not exist")
  elseif(NOT source IN_LIST HAKMEM_SOURCES)
    continue() # another processor's
  elseif(at LESS others_at)
    list(APPEND ordered ${source})
  else()
    list(APPEND last ${source})
  endif()
endforeach()
set(others ${HAKMEM_SOURCES})
list(REMOVE_ITEM others ${ordered} ${last})
set(HAKMEM_SOURCES ${ordered} ${others} ${last})

add_library(hakmem_flags INTERFACE)
target_include_directories(hakmem_flags INTERFACE src include)
target_compile_definitions(hakmem_flags INTERFACE
  HAK_PROJECT_VERSION="${PROJECT_VERSION}"
  HAK_CHECK_LEVEL=${HAKMEM_CHECK_LEVEL}
  HAK_TINY=${HAKMEM_TINY}
  HAK_SMALL_WINDOW=${HAKMEM_SMALL_WINDOW})
if(HAKMEM_IS_WHOLE)
  target_compile_options(hakmem_flags INTERFACE
    -Wshadow -Wundef -Wconversion $<$<C_COMPILER_ID:Clang>:-Wno-string-conversion> -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes$<SEMICOLON>-Wstrict-prototypes>)
endif()

# ThreadSanitizer does not model fences; the gate's are covered by its model and by the lock's
# tests.
if(HAKMEM_PRESET STREQUAL "tsan" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hakmem_flags INTERFACE -Wno-tsan)
endif()

# The hot path's machine code is reviewed (tests/golden): nothing that a distribution adds to
# its compiler may change it, and the compiler may not take our malloc for the one it knows. Walks
# up the stack need tables, which not every architecture has for C. The Rust crate reads the same
# flags.
file(STRINGS cmake/code_flags.txt code_flags)
add_library(hakmem_code INTERFACE)
target_link_libraries(hakmem_code INTERFACE hakmem_flags)
target_compile_options(hakmem_code INTERFACE ${code_flags} -ffunction-sections)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|i.86")
  target_compile_options(hakmem_code INTERFACE -fcf-protection=none)
endif()

if(NOT HAKMEM_SOURCES)
  return()
endif()

# C cannot catch. As an object to link, not a source: what takes it in is still linked as C.
add_library(hakmem_catch OBJECT src/api/catch.cpp)
target_compile_definitions(hakmem_catch PRIVATE HAK_INTERPOSE=0)
target_link_libraries(hakmem_catch PRIVATE hakmem_code)
target_compile_options(hakmem_catch PRIVATE -fno-rtti)

add_library(hakmem_test STATIC EXCLUDE_FROM_ALL ${HAKMEM_SOURCES})
target_compile_definitions(hakmem_test PUBLIC HAK_INTERPOSE=0 PRIVATE HAK_SHARED=0)
target_link_libraries(hakmem_test PRIVATE hakmem_code
  PUBLIC -pthread $<TARGET_OBJECTS:hakmem_catch>)
add_dependencies(hakmem_test hakmem_catch)

if(NOT HAKMEM_SHIP)
  return()
endif()

# What is loaded asks libc otherwise than what is linked (src/os/linkage.h).
set(HAKMEM_LINKAGE src/os/at_fork.c src/os/dlopen.c src/os/find_object.c src/os/identity.c
  src/os/next_symbol.c src/os/signal_names.c src/os/thread_exit.c)
set(HAKMEM_COMMON ${HAKMEM_SOURCES})
list(TRANSFORM HAKMEM_LINKAGE PREPEND ${PROJECT_SOURCE_DIR}/)
list(REMOVE_ITEM HAKMEM_COMMON ${HAKMEM_LINKAGE})
# What is seldom run is small rather than fast: the whole library's code may be resident in every
# process (tests/preload/rss_preload.sh).
set(HAKMEM_SELDOM ${HAKMEM_COMMON})
list(FILTER HAKMEM_SELDOM INCLUDE REGEX
  "/(conf|control|learn|policy|profile|stats)/|/api/(control|exit_check|foreign|glibc|hakmem)")
set(HAKMEM_SELDOM_OS ${HAKMEM_COMMON})
list(FILTER HAKMEM_SELDOM_OS INCLUDE REGEX "/os/|/process/(background|fork|learned|start)")
list(FILTER HAKMEM_SELDOM_OS EXCLUDE REGEX "/os/(lock|processor|random|rseq|thread)[.]c")
list(APPEND HAKMEM_SELDOM ${HAKMEM_SELDOM_OS})
set_source_files_properties(${HAKMEM_SELDOM} PROPERTIES COMPILE_OPTIONS -Os)

add_library(hakmem_objects OBJECT ${HAKMEM_COMMON})
target_compile_definitions(hakmem_objects PRIVATE HAK_INTERPOSE=1)
target_link_libraries(hakmem_objects PRIVATE hakmem_code)
foreach(linkage shared linked)
  add_library(hakmem_objects_${linkage} OBJECT ${HAKMEM_LINKAGE})
  target_compile_definitions(hakmem_objects_${linkage} PRIVATE
    HAK_INTERPOSE=1 HAK_SHARED=$<STREQUAL:${linkage},shared>)
  target_link_libraries(hakmem_objects_${linkage} PRIVATE hakmem_code)
endforeach()

set(HAKMEM_EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
add_library(hakmem_shared SHARED $<TARGET_OBJECTS:hakmem_objects_shared>
  $<TARGET_OBJECTS:hakmem_objects>)
set_target_properties(hakmem_shared PROPERTIES
  OUTPUT_NAME hakmem VERSION ${PROJECT_VERSION} SOVERSION 0
  LINKER_LANGUAGE C LINK_DEPENDS ${HAKMEM_EXPORTS})
target_link_options(hakmem_shared PRIVATE
  -Wl,--version-script=${HAKMEM_EXPORTS} -Wl,-z,nodelete,-z,now,-z,relro,-z,defs -Wl,--as-needed)

# The linker puts the functions of cmake/usual_functions.txt together, and constants where they are
# resident anyway, if it knows INSERT. At exit no page of others is needed: _fini, which stands
# behind all code, does nothing. Segments are aligned to 64 KiB: the kernel maps a file in aligned
# pieces of that size, and glibc 2.35 and later honour the alignment.
set(HAKMEM_LAYOUT ${PROJECT_BINARY_DIR}/layout.ld)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/usual_functions.txt)
file(STRINGS cmake/usual_functions.txt functions REGEX "^[^#]")
set(sections "*crtbegin*.o(.text)\n")
foreach(kind hot startup exit)
  string(APPEND sections "*(.text.${kind} .text.${kind}.*)\n")
endforeach()
foreach(function ${functions})
  string(APPEND sections "*(.text.${function} .text.${function}.*)\n")
endforeach()
configure_file(cmake/layout.ld.in ${HAKMEM_LAYOUT} @ONLY)
add_library(hakmem_layout INTERFACE IMPORTED)
target_link_options(hakmem_layout INTERFACE -Wl,-T,${HAKMEM_LAYOUT})
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES hakmem_layout)
check_c_source_compiles("int main(void) { return 0; }" HAKMEM_CAN_INSERT FAIL_REGEX warning)
unset(CMAKE_REQUIRED_LIBRARIES)
if(HAKMEM_CAN_INSERT)
  target_link_libraries(hakmem_shared PRIVATE hakmem_layout)
  target_link_options(hakmem_shared PRIVATE -Wl,-fini=hak_no_fini -Wl,-z,max-page-size=65536)
  set_property(TARGET hakmem_shared APPEND PROPERTY LINK_DEPENDS ${HAKMEM_LAYOUT})
endif()
target_link_libraries(hakmem_shared PRIVATE -pthread $<TARGET_OBJECTS:hakmem_catch>)
add_dependencies(hakmem_shared hakmem_catch)

# One object to link first, so that no archive's search order decides whose malloc a program gets.
set(HAKMEM_OBJECT ${PROJECT_BINARY_DIR}/hakmem.o)
# Its code begins and ends with functions that are known (src/os/own_code.h).
foreach(end begin end)
  add_library(hakmem_${end} OBJECT src/os/own_${end}.c)
  target_compile_definitions(hakmem_${end} PRIVATE HAK_INTERPOSE=1)
  target_link_libraries(hakmem_${end} PRIVATE hakmem_code)
endforeach()
target_compile_definitions(hakmem_objects_linked PRIVATE HAK_HAS_BOUNDS=1)
set(HAKMEM_PARTS $<TARGET_OBJECTS:hakmem_begin> $<TARGET_OBJECTS:hakmem_objects>
  $<TARGET_OBJECTS:hakmem_objects_linked> $<TARGET_OBJECTS:hakmem_catch>
  $<TARGET_OBJECTS:hakmem_end>)
add_custom_command(OUTPUT ${HAKMEM_OBJECT}
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${HAKMEM_OBJECT} ${HAKMEM_PARTS}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${HAKMEM_OBJECT}
  DEPENDS hakmem_begin hakmem_objects hakmem_objects_linked hakmem_catch hakmem_end ${HAKMEM_PARTS}
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(hakmem_object ALL DEPENDS ${HAKMEM_OBJECT})

# The archive has this object as its one member: who takes malloc takes the rest, too, and no search
# of libc.a in a static link finds a name of the family missing and brings libc's in beside it.
set_source_files_properties(${HAKMEM_OBJECT} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(hakmem_static STATIC ${HAKMEM_OBJECT})
add_dependencies(hakmem_static hakmem_object)
set_target_properties(hakmem_static PROPERTIES OUTPUT_NAME hakmem LINKER_LANGUAGE C)

# How programs take these in, from here or installed. The archive's object is taken also when only
# libc itself calls malloc. Stacks need the sorted table of frames, which gcc leaves out of static
# programs.
foreach(kind shared static)
  target_include_directories(hakmem_${kind} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(hakmem_${kind} INTERFACE -pthread)
  add_library(hakmem::${kind} ALIAS hakmem_${kind})
endforeach()
target_link_options(hakmem_static INTERFACE -Wl,-u,malloc -Wl,--eh-frame-hdr)
add_library(hakmem::object OBJECT IMPORTED GLOBAL)
set_target_properties(hakmem::object PROPERTIES
  IMPORTED_OBJECTS ${HAKMEM_OBJECT}
  INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/include
  INTERFACE_LINK_LIBRARIES -pthread
  INTERFACE_LINK_OPTIONS -Wl,--eh-frame-hdr)
add_dependencies(hakmem::object hakmem_object)

# Checked copies, to be preloaded beside the library (docs/HARDEN.md). It defines memcpy and its
# like: the compiler may not make calls of them out of their loops, nor fortify them. Sanitizers
# check these functions themselves.
if(NOT HAKMEM_FLAGS MATCHES "-fsanitize")
  file(GLOB bounds CONFIGURE_DEPENDS bounds/*.c)
  add_library(hakmem_bounds MODULE ${bounds})
  set_target_properties(hakmem_bounds PROPERTIES
    PREFIX lib OUTPUT_NAME hakmem-bounds NO_SONAME ON C_VISIBILITY_PRESET hidden)
  target_compile_definitions(hakmem_bounds PRIVATE HAK_INTERPOSE=0 HAK_SHARED=1)
  target_link_libraries(hakmem_bounds PRIVATE hakmem_code)
  target_compile_options(hakmem_bounds PRIVATE
    -U_FORTIFY_SOURCE -fno-builtin $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<C_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)
  # glibc before 2.34 has dlsym in a library of its own.
  target_link_libraries(hakmem_bounds PRIVATE
    -Wl,--push-state,--no-as-needed -ldl -Wl,--pop-state)
  target_link_options(hakmem_bounds PRIVATE -Wl,-z,nodelete,-z,now,-z,relro)
endif()
