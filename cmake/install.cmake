# Headers, both libraries, pkg-config file, CMake package.
install(TARGETS tt tt_static EXPORT tt-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ARCHIVE
  DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tt.h include/tt_types.h include/tt_ops.h include/tt_nn.h include/tt_optim.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TT_PREFIX)
  install(FILES ${PROJECT_BINARY_DIR}/include/tt_prefix.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set(tt_pc_cflags "-DTT_PREFIX_HEADER='\"tt_prefix.h\"'")
endif()
if(TT_PACKED_RELOCATIONS)
  set(tt_pc_static_flags ",-z,pack-relative-relocs")
endif()
if(tt_format STREQUAL pe)
  set(tt_pc_system_libraries " -lbcrypt -lsynchronization")
endif()
file(RELATIVE_PATH tt_pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/tt.pc.in ${tt_prefix}tt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/${tt_prefix}tt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(EXPORT tt-targets NAMESPACE tt:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${tt_prefix}tt)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${tt_prefix}tt-config-version.cmake COMPATIBILITY SameMajorVersion)
file(CONFIGURE OUTPUT ${tt_prefix}tt-config.cmake CONTENT "include(\${CMAKE_CURRENT_LIST_DIR}/tt-targets.cmake)\n" @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/${tt_prefix}tt-config.cmake
  ${PROJECT_BINARY_DIR}/${tt_prefix}tt-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${tt_prefix}tt)
