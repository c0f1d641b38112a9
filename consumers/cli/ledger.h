/* The columns of a ledger as every verb shows them. */
#ifndef TRACEFAN_CLI_LEDGER_H
#define TRACEFAN_CLI_LEDGER_H

#include "consumers/cli/writer.h"
#include "consumers/client/tracefan.h"

/* `before` and "1 committed = 1 decoded + 0 undecodable + 0 lost in the kernel", as a line. */
void ledger_text_session(struct writer *writer, const char *before, const struct tfan_session_ledger *ledger);

/* `"decoded":1,` and so on: members of an object that is the caller's. */
void ledger_json_session(struct writer *writer, const struct tfan_session_ledger *ledger);
void ledger_json_trace(struct writer *writer, const struct tfan_ledger *ledger);

#endif
