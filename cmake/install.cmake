# What is installed, how other projects find it (pkg-config, find_package), and the Debian package.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Installing and packaging take what is built; they build nothing themselves.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

foreach(kind shared static)
  target_include_directories(hakmem_${kind} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(hakmem_${kind} INTERFACE -pthread)
  set_target_properties(hakmem_${kind} PROPERTIES EXPORT_NAME ${kind})
endforeach()
# The archive's object is taken also when only libc itself calls malloc.
target_link_options(hakmem_static INTERFACE -Wl,-u,malloc)

install(TARGETS hakmem_shared hakmem_static EXPORT hakmem-targets)
install(FILES ${HAKMEM_OBJECT} DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(hakmem_cli PROPERTIES EXPORT_NAME program)
install(TARGETS hakmem_cli EXPORT hakmem-targets)
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(EXISTS ${PROJECT_SOURCE_DIR}/include)
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(FILES docs/man/hakmem.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/man/hakmem.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(FILES packaging/completions/hakmem.bash RENAME hakmem
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES packaging/completions/_hakmem
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES packaging/completions/hakmem.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md docs/CONFIG.md docs/STATS.md docs/SYSCALLS.md
  docs/hakmem.conf DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY packaging/service/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The files say where they are by their own place, so that a folder can be moved after installing.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
configure_package_config_file(cmake/hakmem-config.cmake.in ${CMAKE_BINARY_DIR}/hakmem-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hakmem-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT hakmem-targets NAMESPACE hakmem:: DESTINATION ${package_dir})
install(FILES ${CMAKE_BINARY_DIR}/hakmem-config.cmake
  ${CMAKE_BINARY_DIR}/hakmem-config-version.cmake DESTINATION ${package_dir})

cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY / OUTPUT_VARIABLE place)
cmake_path(APPEND place pkgconfig)
cmake_path(RELATIVE_PATH place BASE_DIRECTORY / OUTPUT_VARIABLE place)
string(REGEX REPLACE "[^/]+" ".." HAKMEM_UP_TO_PREFIX ${place})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "drop-in malloc for Linux")
configure_file(cmake/hakmem.pc.in ${CMAKE_BINARY_DIR}/hakmem.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hakmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# cpack -G DEB --config out/release/CPackConfig.cmake
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hakmem)
set(CPACK_PACKAGE_CONTACT "the hakmem authors <hakmem@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.31)")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/triggers)
include(CPack)
