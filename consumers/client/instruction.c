/* Source of the encoding: Intel's Software Developer's Manual, volume 2, chapter 2 and appendix A; AMD's
 * Architecture Programmer's Manual, volume 3, for XOP. 64-bit mode only. */
#include "consumers/client/instruction.h"

#include <stdbool.h>

/* What follows an opcode, a letter for each:
 *   '.' nothing    'm' ModRM    'b' a byte    'w' two bytes    'z' four, or two with an operand-size prefix
 *   'j' four, whatever the prefixes    'v' the operand's size, up to eight    'a' an address
 *   'e' two and one (ENTER)    'B' ModRM and a byte    'Z' ModRM and z    'g' ModRM, and a byte where it is a TEST
 *   'G' the same with z    'r' ModRM that is a register whatever its mode says
 *   'x' no instruction    'p' prefix    'X' the first byte of a longer encoding */
static const char one_byte[256 + 1] =
	"mmmmbzxxmmmmbzxX" "mmmmbzxxmmmmbzxx" /* 00 */
	"mmmmbzpxmmmmbzpx" "mmmmbzpxmmmmbzpx" /* 20 */
	"XXXXXXXXXXXXXXXX" "................" /* 40: REX */
	"xxXmppppzZbB...." "bbbbbbbbbbbbbbbb" /* 60 */
	"BZxBmmmmmmmmmmmX" "..........x....." /* 80: 8f is POP or XOP */
	"aaaa....bz......" "bbbbbbbbvvvvvvvv" /* a0 */
	"BBw.XXBZe.w..bx." "mmmmxxx.mmmmmmmm" /* c0 */
	"bbbbbbbbjjxb...." "p.pp..gG......mm"; /* e0 */

static const char two_bytes[256 + 1] =
	"mmmmx.....x.xm.B" "mmmmmmmmmmmmmmmm" /* 00 */
	"rrrrxxxxmmmmmmmm" "......x.XxXxxxxx" /* 20 */
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" /* 40 */
	"mmmmmmmmmmmmmmmm" "BBBBmmm.mmxxmmmm" /* 60 */
	"jjjjjjjjjjjjjjjj" "mmmmmmmmmmmmmmmm" /* 80 */
	"...mBmmm...mBmmm" "mmmmmmmmmmBmmmmm" /* a0 */
	"mmBmBBBm........" "mmmmmmmmmmmmmmmm" /* c0 */
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm"; /* e0 */

struct decoder {
	const uint8_t *bytes;
	size_t size, at;
	bool operand16, address32, wide; /* prefixes 66, 67, REX.W */
	bool bad;
};

static uint8_t peek(struct decoder *d)
{
	if (d->at >= d->size) {
		d->bad = true;
		return 0;
	}
	return d->bytes[d->at];
}

static uint8_t take(struct decoder *d)
{
	uint8_t byte = peek(d);

	d->at++;
	return byte;
}

/* ModRM, SIB and displacement. Returns ModRM's middle field. */
static unsigned int take_modrm(struct decoder *d)
{
	uint8_t modrm = take(d), sib = 0;
	unsigned int mode = modrm >> 6, base = modrm & 7;

	if (mode == 3)
		return modrm >> 3 & 7;
	if (base == 4) {
		sib = take(d);
		base = sib & 7;
		if (base == 5 && mode == 0)
			d->at += 4;
	} else if (base == 5 && mode == 0) {
		d->at += 4;
	}
	d->at += mode == 1 ? 1 : mode == 2 ? 4 : 0;
	return modrm >> 3 & 7;
}

static size_t immediate(const struct decoder *d, char what)
{
	switch (what) {
	case 'b':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'z':
		return d->operand16 && !d->wide ? 2 : 4;
	case 'j':
		return 4;
	case 'v':
		return d->wide ? 8 : d->operand16 ? 2 : 4;
	case 'a':
		return d->address32 ? 4 : 8;
	default:
		return 0;
	}
}

/* What follows the opcode, by its letter. */
static void take_operands(struct decoder *d, char what)
{
	unsigned int middle;

	switch (what) {
	case 'm':
		(void)take_modrm(d);
		break;
	case 'r':
		d->at++;
		break;
	case 'B':
		(void)take_modrm(d);
		d->at += 1;
		break;
	case 'Z':
		(void)take_modrm(d);
		d->at += immediate(d, 'z');
		break;
	case 'g':
	case 'G':
		middle = take_modrm(d);
		if (middle < 2)
			d->at += immediate(d, what == 'g' ? 'b' : 'z');
		break;
	case 'x':
	case 'p':
	case 'X':
		d->bad = true;
		break;
	default:
		d->at += immediate(d, what);
		break;
	}
}

/* The opcode of a VEX or EVEX encoding, whose prefix names the map. */
static void take_vector(struct decoder *d, unsigned int map)
{
	uint8_t opcode = take(d);

	switch (map) {
	case 1:
		/* VZEROUPPER and VZEROALL have no operands. */
		if (opcode != 0x77)
			take_operands(d, two_bytes[opcode] == 'B' ? 'B' : 'm');
		break;
	case 3:
		take_operands(d, 'B');
		break;
	case 2:
	case 5:
	case 6:
		take_operands(d, 'm');
		break;
	default:
		d->bad = true;
		break;
	}
}

static void take_xop(struct decoder *d)
{
	unsigned int map = take(d) & 0x1f;

	d->at += 2; /* the rest of the prefix, and the opcode */
	take_operands(d, 'm');
	d->at += map == 8 ? 1 : map == 10 ? 4 : 0;
	if (map < 8 || map > 10)
		d->bad = true;
}

static void take_two_bytes(struct decoder *d)
{
	uint8_t opcode = take(d);

	if (opcode == 0x38) {
		d->at++;
		take_operands(d, 'm');
	} else if (opcode == 0x3a) {
		d->at++;
		take_operands(d, 'B');
	} else {
		take_operands(d, two_bytes[opcode]);
		/* EXTRQ and INSERTQ with their two bytes; without a prefix it is VMREAD. */
		if (opcode == 0x78 && d->operand16)
			d->at += 2;
	}
}

static void take_opcode(struct decoder *d)
{
	uint8_t opcode = take(d);

	switch (opcode) {
	case 0x0f:
		take_two_bytes(d);
		break;
	case 0xc5:
		d->at++;
		take_vector(d, 1);
		break;
	case 0xc4:
		opcode = take(d);
		d->at++;
		take_vector(d, opcode & 0x1f);
		break;
	case 0x62:
		opcode = take(d);
		d->at += 2;
		take_vector(d, opcode & 7);
		break;
	case 0x8f:
		if ((peek(d) & 0x38) != 0)
			take_xop(d);
		else
			take_operands(d, 'm');
		break;
	default:
		take_operands(d, one_byte[opcode]);
		break;
	}
}

/* Legacy prefixes in any order, then REX, which counts only right before the opcode. */
static void take_prefixes(struct decoder *d)
{
	while (!d->bad && one_byte[peek(d)] == 'p') {
		uint8_t prefix = take(d);

		d->operand16 |= prefix == 0x66;
		d->address32 |= prefix == 0x67;
	}
	while (!d->bad && (peek(d) & 0xf0) == 0x40)
		d->wide = take(d) & 8;
}

unsigned int instruction_length(const uint8_t *bytes, size_t size)
{
	struct decoder d = { .bytes = bytes, .size = size < INSTRUCTION_MAX ? size : INSTRUCTION_MAX };

	take_prefixes(&d);
	if (!d.bad)
		take_opcode(&d);
	return d.bad || d.at > d.size ? 0 : (unsigned int)d.at;
}
