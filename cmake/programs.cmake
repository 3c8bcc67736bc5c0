# Programs around the library: the `hakmem` command, the benchmarks, the no-op allocator.

# hakmem_program(NAME SOURCES...): an executable with hakmem's malloc, by linking hakmem.o first.
function(hakmem_program name)
  set_source_files_properties(${HAKMEM_OBJECT} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_executable(${name} ${HAKMEM_OBJECT} ${ARGN})
  add_dependencies(${name} hakmem_object)
  target_link_libraries(${name} PRIVATE -pthread m)
endfunction()

if(NOT TARGET hakmem_object OR NOT (HAKMEM_IS_WHOLE OR HAKMEM_INSTALL))
  return()
endif()

# The command reads options as the library does; it has its own libc's malloc.
include(GNUInstallDirs)
file(GLOB HAKMEM_CLI CONFIGURE_DEPENDS cli/*.c src/conf/*.c)
list(APPEND HAKMEM_CLI src/os/os_linux.c src/os/clock.c src/os/confine.c src/os/os_file.c
  src/os/random.c src/os/descriptors.c src/os/home.c src/os/kept_fd.c src/os/listen.c
  src/os/output.c src/os/rseq.c src/os/signals.c src/os/stderr.c)
# What reads and writes the files of option `profile`.
list(APPEND HAKMEM_CLI src/learn/checksum.c src/learn/effect_line.c src/learn/holdback.c
  src/learn/keep_line.c src/learn/keep_time.c src/learn/learned_file.c src/learn/line_reader.c
  src/learn/match_line.c src/learn/site_gate.c src/learn/site_line.c src/learn/site_log.c
  src/learn/size_spread.c src/learn/wager.c src/os/own_file.c src/policy/policy_table.c)
# What reads published numbers, and prints them in the same forms.
list(APPEND HAKMEM_CLI src/control/request.c src/os/shared.c src/stats/shm.c
  src/stats/event_log.c src/stats/emit.c
  src/stats/emit_json.c src/stats/emit_openmetrics.c src/stats/emit_text.c
  src/stats/emit_xml.c src/stats/glibc_view.c src/stats/summary.c src/profile/board.c)
file(RELATIVE_PATH library_folder
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
add_executable(hakmem_cli ${HAKMEM_CLI})
set_target_properties(hakmem_cli PROPERTIES OUTPUT_NAME hakmem)
target_compile_definitions(hakmem_cli PRIVATE
  HAK_INTERPOSE=0 HAK_SHARED=0
  HAK_LIBRARY_FROM_PROGRAM="${library_folder}/libhakmem.so.${PROJECT_VERSION_MAJOR}"
  HAK_BOUNDS_FROM_PROGRAM="${library_folder}/hakmem/libhakmem-bounds.so")
target_include_directories(hakmem_cli PRIVATE cli)
target_link_libraries(hakmem_cli PRIVATE hakmem_profiles hakmem_flags -pthread)

if(NOT (HAKMEM_IS_WHOLE AND HAKMEM_BENCH))
  return()
endif()

# A benchmark that the compiler may rid of its malloc/free pairs measures nothing.
set(HAKMEM_BENCH_FLAGS
  -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)

file(GLOB workloads CONFIGURE_DEPENDS bench/workloads/*.c)
foreach(source ${workloads})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name}_system ${source})
  target_link_libraries(${name}_system PRIVATE -pthread m)
  hakmem_program(${name}_hakmem ${source})
  foreach(program ${name}_system ${name}_hakmem)
    target_include_directories(${program} PRIVATE bench/workloads bench/trace include)
    target_compile_options(${program} PRIVATE ${HAKMEM_BENCH_FLAGS})
  endforeach()
endforeach()

# Times the merging of statistics.
hakmem_program(stats_merge bench/stats/stats_merge.c)
target_include_directories(stats_merge PRIVATE include)

# Records a program's calls for the workload `replay`.
add_library(trace_record SHARED bench/trace/record.c)
target_compile_options(trace_record PRIVATE
  ${HAKMEM_BENCH_FLAGS} -fvisibility=hidden -ftls-model=initial-exec)

file(GLOB noop CONFIGURE_DEPENDS bench/noop/*.c)
if(noop)
  add_library(noop SHARED ${noop})
  target_compile_options(noop PRIVATE ${HAKMEM_BENCH_FLAGS} -ftls-model=initial-exec)
endif()

# Numbers threads as processors, for tools/scale.py.
add_library(processors SHARED bench/scale/processors.c)
target_compile_options(processors PRIVATE -ftls-model=initial-exec)
