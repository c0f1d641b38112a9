# What tools/check and tools/demo share: packages, tracefs, builds. Sourced by bash, with `top` set to the tree.

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Packages by purpose; the names are the same in Debian 12 and later and in Ubuntu 24.04 and later.
packages_build=(gcc libc6-dev cmake ninja-build pkg-config
	libtracefs-dev libtraceevent-dev liburing-dev libelf-dev libdw-dev libncurses-dev libpcre2-dev libseccomp-dev libinih-dev zlib1g-dev libcmocka-dev python3 util-linux)
packages_package=(debhelper dpkg-dev lintian systemd)
packages_check=(clang clang-tidy libclang-rt-dev g++ spin groff-base systemtap-sdt-dev qemu-system-x86 busybox-static git)

# Says so where the distribution is another one than those whose packages are known to suffice.
check_distribution() {
	local ID='' VERSION_ID='' PRETTY_NAME='this system'
	# shellcheck source=/dev/null
	[ ! -r /etc/os-release ] || . /etc/os-release
	case $ID in
	debian) ! dpkg --compare-versions "${VERSION_ID:-99}" lt 12 || die "needs Debian 12 or later; this is $PRETTY_NAME" ;;
	ubuntu) ! dpkg --compare-versions "${VERSION_ID:-99}" lt 24.04 || die "needs Ubuntu 24.04 or later; this is $PRETTY_NAME" ;;
	*) say "note: written for Debian and Ubuntu; this is $PRETTY_NAME" ;;
	esac
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]; }

# Installs those of the named packages that are missing, and says which.
install_packages() {
	local package missing=()
	command -v apt-get > /dev/null || {
		say "note: no apt-get here; needed are the likes of: $*"
		return 0
	}
	check_distribution
	for package; do
		installed "$package" || missing+=("$package")
	done
	if [ ${#missing[@]} = 0 ]; then
		say "packages: all $# are installed"
		return 0
	fi
	[ "$(id -u)" = 0 ] || die "packages are missing; run this first:
    sudo apt-get install --no-install-recommends ${missing[*]}"
	say "packages: installing ${missing[*]}"
	apt_get update -qq
	apt_get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

# apt-get that asks nothing, waits for another one to end, and tries again when a mirror stumbles.
apt_get() {
	local try
	for try in 1 2 3; do
		! DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 "$@" || return 0
		[ "$try" = 3 ] || { say "apt-get $1 failed; trying again"; sleep 5; }
	done
	die "apt-get $1 failed"
}

tracefs=/sys/kernel/tracing

# True when live events can be had here; mounts tracefs where that is all that lacks. If not, `why_not_live` says why.
prepare_tracefs() {
	why_not_live=
	if [ "$(id -u)" != 0 ]; then
		why_not_live="needs root"
	elif [ -d $tracefs/instances ]; then
		return 0
	elif [ ! -d $tracefs ]; then
		why_not_live="this kernel has no tracefs"
	elif mount -t tracefs tracefs $tracefs 2> /dev/null; then
		say "tracefs: mounted at $tracefs"
		[ -d $tracefs/instances ] || why_not_live="tracefs is empty (kernel lockdown?)"
	else
		why_not_live="tracefs can't be mounted here"
	fi
	[ -z "$why_not_live" ]
}
