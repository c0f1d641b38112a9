# What an operator does with the units, from inside the box (box.sh). Each line of the log is "WHAT: VALUE".
say() { echo "$1: ${*:2}"; }
show() { systemctl show "tracefan-$1@default" -p "$2" --value; }
state() { say "$1" "$(show reader SubState) $(show router SubState)"; }

# Until CONDITION holds, at most a minute.
until_true() {
	for ((i = 0; i < 300; i++)); do
		! eval "$1" || return 0
		sleep 0.2
	done
	say timeout "$1"
}

# Whether a daemon runs, and is another one than before.
anew() {
	local pid
	pid=$(show "$1" MainPID)
	[ "$pid" != 0 ] && [ "$pid" != "$2" ] && [ "$(show "$1" SubState)" = running ]
}

# As a member of the group: how many times this very command was seen.
trace() {
	say "$1" "$(timeout 60 setpriv --reuid=daemon --regid=tracefan --clear-groups tracefan trace --session default \
		-e 'tracepoint:sched:sched_process_exec if COMM == "cat"' -o json -- cat /dev/null | grep -c '"kind":"event"')"
}

state started
for daemon in reader router; do
	pid=$(show $daemon MainPID)
	say "$daemon-user" "$(stat -c %U "/proc/$pid")"
	say "$daemon-capabilities" "$(sed -n 's/^Cap\(Eff\|Bnd\):\t//p' "/proc/$pid/status" | sort -u)"
	say "$daemon-tracefs" "$(grep -c ' /sys/kernel/tracing rw' "/proc/$pid/mountinfo")"
done
trace traced

before=$(show router MainPID)
kill -KILL "$before"
until_true "anew router $before"
state router-killed
trace traced-by-the-next-router

before=$(show reader MainPID)
kill -KILL "$before"
until_true "anew reader $before"
until_true '[ "$(show router SubState)" = running ]'
state reader-killed
trace traced-by-the-next-reader

systemctl stop tracefan-reader@default
until_true '[ "$(show router SubState)" = dead ]'
state stopped
say results "$(show reader Result) $(show router Result)"
say left "$(ls -d /sys/kernel/tracing/instances/tracefan-default /run/tracefan/default 2> /dev/null)"
say end yes
echo > "${0%/*}/done"
