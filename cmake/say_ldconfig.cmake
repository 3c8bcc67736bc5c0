# Runs at the end of an installation: says when the loader's cache must be told of the library:
# in a folder that ldconfig lists and whose library it does not know yet.
find_program(HAKMEM_LDCONFIG ldconfig PATHS /sbin /usr/sbin)
if(HAKMEM_LDCONFIG AND "$ENV{DESTDIR}" STREQUAL "")
  get_filename_component(folder "${HAKMEM_LIBDIR}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
  execute_process(COMMAND ${HAKMEM_LDCONFIG} -v -N -X OUTPUT_VARIABLE folders ERROR_QUIET)
  execute_process(COMMAND ${HAKMEM_LDCONFIG} -p OUTPUT_VARIABLE cache ERROR_QUIET)
  string(FIND "\n${folders}" "\n${folder}:" is_listed)
  string(FIND "${cache}" " => ${folder}/${HAKMEM_SONAME}\n" is_known)
  if(NOT is_listed EQUAL -1 AND is_known EQUAL -1)
    message("-- Run ldconfig as root: the loader does not know ${folder}/${HAKMEM_SONAME} yet.")
  endif()
endif()
