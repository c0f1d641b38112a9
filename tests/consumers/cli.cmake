# The command line's tests.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

tracefan_test(cli_number tracefan_cli)
tracefan_test(cli_escape tracefan_cli)
tracefan_test(cli_writer tracefan_cli)
tracefan_test(cli_options tracefan_cli)
tracefan_test(cli_doctor tracefan_cli)
tracefan_test(cli_daemon tracefan_cli)
tracefan_test(client_operator tracefan_client)

# cli_fake.c stands in for libtracefan: its objects come first, so the library's are not taken.
tracefan_test(cli_output tracefan_cli)
target_sources(cli_output PRIVATE cli_fake.c)

# The whole program on the same footing; the scripts say what it shall do.
add_executable(tracefan_fake cli_fake.c ${PROJECT_SOURCE_DIR}/consumers/cli/main.c)
target_link_libraries(tracefan_fake PRIVATE tracefan_cli tracefan_flags)

foreach(name cli_program cli_private_session cli_manual)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.py)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "TRACEFAN_FAKE=$<TARGET_FILE:tracefan_fake>;PYTHONDONTWRITEBYTECODE=1"
    SKIP_RETURN_CODE 77 TIMEOUT 300 LABELS "unit;consumers")
endforeach()
