# What is installed, and how other projects find it: pkg-config and find_package.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Installing takes what is built; it builds nothing itself.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

foreach(kind shared static)
  target_include_directories(hakmem_${kind} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(hakmem_${kind} PROPERTIES EXPORT_NAME ${kind})
endforeach()
install(TARGETS hakmem_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS hakmem_shared EXPORT hakmem-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hakmem_static EXPORT hakmem-static-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET hakmem_bounds) # only ever preloaded: not among the libraries to link
  install(TARGETS hakmem_bounds LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem)
endif()
install(FILES ${HAKMEM_OBJECT} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES docs/man/hakmem.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/man/hakmem.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(FILES packaging/completions/hakmem.bash RENAME hakmem
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES packaging/completions/_hakmem
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES packaging/completions/hakmem.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md LICENSE docs/CONFIG.md docs/STATS.md docs/SYSCALLS.md
  docs/hakmem.conf DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY packaging/service/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# The files say where they are by their own place, so that a folder can be moved after installing.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
configure_package_config_file(cmake/hakmem-config.cmake.in
  ${PROJECT_BINARY_DIR}/hakmem-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hakmem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
# A distribution may have the archive and its target in a package of their own.
install(EXPORT hakmem-targets NAMESPACE hakmem:: DESTINATION ${package_dir})
install(EXPORT hakmem-static-targets NAMESPACE hakmem:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/hakmem-config.cmake
  ${PROJECT_BINARY_DIR}/hakmem-config-version.cmake DESTINATION ${package_dir})

# One file for pkg-config for each of the three.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(pc_prefix \${pcfiledir}/${up})
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(pc_${folder} ${CMAKE_INSTALL_${folder}})
  if(NOT IS_ABSOLUTE "${pc_${folder}}")
    set(pc_${folder} \${prefix}/${pc_${folder}})
  endif()
endforeach()
function(hakmem_pc name what libs)
  configure_file(cmake/hakmem.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
hakmem_pc(hakmem "drop-in malloc"
  "-L\${libdir} -Wl,--push-state,--no-as-needed,-u,malloc -lhakmem -Wl,--pop-state")
hakmem_pc(hakmem-static "drop-in malloc, the archive"
  "-Wl,-u,malloc \${libdir}/libhakmem.a -pthread")
hakmem_pc(hakmem-object "drop-in malloc, one object" "\${libdir}/hakmem.o -pthread")

install(CODE "set(HAKMEM_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
set(HAKMEM_SONAME libhakmem.so.${PROJECT_VERSION_MAJOR})")
install(SCRIPT cmake/say_ldconfig.cmake)
if(HAKMEM_IS_WHOLE)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND}
    -DHAKMEM_MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
    -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
endif()
