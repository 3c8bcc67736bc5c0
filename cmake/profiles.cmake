# hakmem_profiles: heap profiles, for the command and its fuzz target. With libdw of elfutils and
# libiberty of binutils addresses get names; with protobuf-c and zlib there are files for pprof.
# Without them the command is built all the same, and says what it cannot do.

include(CheckCSourceCompiles)
include(CheckCSourceRuns)

# A library is there if what is linked with it runs: find_library alone takes another machine's, or
# another libc's, for this one's.
function(hakmem_find result libraries source)
  set(CMAKE_REQUIRED_LIBRARIES ${libraries})
  if(CMAKE_CROSSCOMPILING)
    check_c_source_compiles("${source}" ${result})
  else()
    check_c_source_runs("${source}" ${result})
  endif()
endfunction()

# An archive where there is one: then the command needs nothing of it where it runs.
find_library(HAKMEM_PROTOBUF_C NAMES libprotobuf-c.a protobuf-c)
find_program(HAKMEM_PROTOC_C NAMES protoc-c)
find_library(HAKMEM_ZLIB NAMES z)
find_library(HAKMEM_IBERTY NAMES libiberty.a)
mark_as_advanced(HAKMEM_PROTOBUF_C HAKMEM_PROTOC_C HAKMEM_ZLIB HAKMEM_IBERTY)

if(HAKMEM_IBERTY)
  # libdw is loaded where it is needed (cli/profiles/symbols_libdw.c): its header suffices here.
  hakmem_find(HAKMEM_HAS_SYMBOLS "${HAKMEM_IBERTY};${CMAKE_DL_LIBS}" "
    #include <elfutils/libdwfl.h>
    #include <libiberty/demangle.h>
    int main(void) { return cplus_demangle(\"_Z1fv\", DMGL_AUTO) == 0 || sizeof(Dwarf_Die) == 0; }")
endif()
if(HAKMEM_PROTOC_C AND HAKMEM_PROTOBUF_C AND HAKMEM_ZLIB)
  hakmem_find(HAKMEM_HAS_PPROF "${HAKMEM_PROTOBUF_C};${HAKMEM_ZLIB}" "
    #include <protobuf-c/protobuf-c.h>
    #include <zlib.h>
    int main(void) { return protobuf_c_version() == 0 || zlibVersion() == 0; }")
endif()

file(GLOB profile_sources CONFIGURE_DEPENDS cli/profiles/*.c)
list(TRANSFORM profile_sources REPLACE ".*/" "" OUTPUT_VARIABLE profile_names)
set(absent)
if(HAKMEM_HAS_SYMBOLS)
  list(APPEND absent symbols_none.c)
else()
  message(STATUS "hakmem: the command will name no functions in heap profiles: "
    "that needs libdw-dev (elfutils) and libiberty-dev (binutils)")
  list(APPEND absent symbols_libdw.c)
endif()
if(HAKMEM_HAS_PPROF)
  list(APPEND absent pprof_none.c)
else()
  message(STATUS "hakmem: the command will know no files of pprof: "
    "that needs protobuf-c-compiler, libprotobuf-c-dev and zlib1g-dev")
  list(APPEND absent pprof.c pprof_write.c)
endif()
list(TRANSFORM absent PREPEND ${PROJECT_SOURCE_DIR}/cli/profiles/)
list(REMOVE_ITEM profile_sources ${absent})

add_library(hakmem_profiles STATIC EXCLUDE_FROM_ALL ${profile_sources})
target_include_directories(hakmem_profiles PUBLIC cli)
target_compile_definitions(hakmem_profiles PRIVATE HAK_INTERPOSE=0)
target_link_libraries(hakmem_profiles PRIVATE hakmem_flags PUBLIC m)
set_source_files_properties(cli/profiles/flame.c PROPERTIES
  OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/cli/profiles/flame.html
  COMPILE_DEFINITIONS FLAME_PAGE="${PROJECT_SOURCE_DIR}/cli/profiles/flame.html")
if(HAKMEM_HAS_SYMBOLS)
  target_link_libraries(hakmem_profiles PRIVATE ${HAKMEM_IBERTY} ${CMAKE_DL_LIBS})
endif()
if(HAKMEM_HAS_PPROF)
  set(messages ${PROJECT_BINARY_DIR}/profiles/profile.pb-c)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/profiles)
  add_custom_command(OUTPUT ${messages}.c ${messages}.h
    COMMAND ${HAKMEM_PROTOC_C} --c_out=${PROJECT_BINARY_DIR}/profiles
      --proto_path=${PROJECT_SOURCE_DIR}/cli/profiles profile.proto
    DEPENDS cli/profiles/profile.proto VERBATIM)
  # Not our code, so not our warnings.
  add_library(hakmem_messages OBJECT EXCLUDE_FROM_ALL ${messages}.c ${messages}.h)
  target_compile_options(hakmem_messages PRIVATE -w)
  target_sources(hakmem_profiles PRIVATE $<TARGET_OBJECTS:hakmem_messages>)
  set_source_files_properties(cli/profiles/pprof.c cli/profiles/pprof_write.c PROPERTIES
    OBJECT_DEPENDS ${messages}.h)
  target_include_directories(hakmem_profiles SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/profiles)
  target_link_libraries(hakmem_profiles PRIVATE ${HAKMEM_PROTOBUF_C} ${HAKMEM_ZLIB})
endif()
