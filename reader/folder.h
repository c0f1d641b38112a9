/* Folders, to be looked through. */
#ifndef TRACEFAN_READER_FOLDER_H
#define TRACEFAN_READER_FOLDER_H

#include <dirent.h>

/* One below the folder `at`; closedir is the caller's. NULL: errno says why. */
DIR *folder_open(int at, const char *path);

#endif
