#include "consumers/cli/top.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include <ncurses.h>

bool top_screen_open(void)
{
	(void)setlocale(LC_CTYPE, "");
	if (!newterm(NULL, stdout, stdin))
		return false;
	(void)cbreak();
	(void)noecho();
	(void)nodelay(stdscr, true);
	(void)curs_set(0);
	return true;
}

void top_screen_show(const struct top *top)
{
	const struct tfan_session_ledger *session = &top->session;

	(void)erase();
	(void)mvprintw(0, 0, "session: %s%" PRIu64 " committed, %" PRIu64 " lost in the kernel, %" PRIu64 " undecodable    q: quit",
		session->cleared ? "at least " : "", session->committed, session->lost_kernel, session->undecodable);
	(void)attron(A_REVERSE);
	(void)mvprintw(2, 0, "%12s %14s %14s %14s %12s  %-30s", "EVENTS/S", "DECODED", "DELIVERED", "FILTERED", "LOST RING", "PROBE");
	(void)attroff(A_REVERSE);
	for (size_t i = 0; i < top->count && (int)i + 3 < LINES; i++) {
		const struct top_row *row = &top->rows[i];

		(void)mvprintw((int)i + 3, 0, "%12" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %12" PRIu64 "  ", row->rate,
			row->ledger.decoded, row->ledger.delivered, row->ledger.filtered, row->ledger.lost_ring);
		/* Names hold no control characters: the library refuses them. */
		(void)addnstr(tfan_trace_name(row->trace), COLS > 74 ? COLS - 74 : 0);
	}
	(void)refresh();
}

bool top_screen_quits(void)
{
	int key;

	while ((key = getch()) != ERR) {
		if (key == 'q' || key == 'Q')
			return true;
	}
	return false;
}

void top_screen_close(void)
{
	(void)endwin();
}
