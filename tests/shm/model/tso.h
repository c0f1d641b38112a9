/* The memory of both models: as x86 keeps it. A store goes into its process's buffer and reaches memory some
 * time later, in order; a load reads memory; a fence waits until the own buffer is empty. That is the one
 * reordering that a release/acquire pair does not rule out, a later load before an earlier store, and the
 * one that loses wake-ups. (Machines that reorder more are held to the same by the release stores and acquire
 * loads, which no model here removes.) No process loads what it stored itself, it has its own copy. */

byte mem[MEMORY];

/* (address, value), for process 0 and 1. */
chan stores[2] = [STORES] of { byte, byte };

#define STORE(process, address, value) stores[process]!address,value
#define LOAD(to, address)              to = mem[address]
#define FENCE(process)                 empty(stores[process])
/* Compare and exchange: a fence, too. `seen` is what was there; it succeeded if that is `from`. */
#define EXCHANGE(process, address, from, to, seen) \
	atomic { FENCE(process) -> seen = mem[address]; if :: seen == from -> mem[address] = to :: else fi }

proctype memory(byte process)
{
	byte address, value;

end:
	do
	:: atomic { stores[process]?address,value -> mem[address] = value; address = 0; value = 0 }
	od
}

/* Positions run free in PERIOD values, so that the models pass over their top; PERIOD is a multiple of every
 * ring's capacity. */
#define PLUS(a, n)  (((a) + (n)) % PERIOD)
#define MINUS(a, b) (((a) + PERIOD - (b)) % PERIOD)
