/* What every event's format file begins its fields with. */
#ifndef TRACEFAN_TESTS_SUPPORT_COMMON_FIELDS_H
#define TRACEFAN_TESTS_SUPPORT_COMMON_FIELDS_H

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

#endif
