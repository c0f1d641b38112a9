/* The filter language: text in, syntax tree out. What names and values mean is filter_compile.c's.
 *
 *   filter   = [ or [ "where" place { "," place } ] ] ;
 *   or       = and { "||" and } ;
 *   and      = not { "&&" not } ;
 *   not      = "!" not | "(" or ")" | test ;
 *   test     = field [ ".ustring" | ".function" ] ( operator value | "in" set ) ;
 *   operator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~" | "!~" | "="
 *            | "^=" | "$=" | "*=" | "=~" ;
 *   set      = "{" value { "," value } "}" ;
 *   value    = quoted | cpus | word ;
 *   field    = ( letter | digit | "_" | "$" ) { letter | digit | "_" | "$" } ;
 *   quoted   = '"' { any but '"' } '"' | "'" { any but "'" } "'" ;
 *   place    = word "=" word ;
 *   cpus     = "CPUS{" { any but "}" } "}" ;
 *   word     = ( wordchar | "!" ) { wordchar } ;
 *   wordchar = any but blanks, control characters and  " ' ( ) { } < > = ! ~ , & |
 *            | "|" between two wordchars ;
 *
 * As in the kernel, nothing is escaped in quotes. The bar is for flags: GFP_KERNEL|__GFP_ZERO.
 * Blanks, tabs and newlines may stand between any two of these. A word's meaning depends on the
 * field that it is compared with: number, range of numbers (LO..HI, in sets), symbol, string or
 * function.
 *
 * `where` says at which addresses the kernel's functions lie that the filter names, LO..HI each. It is libtracefan that
 * adds it (consumers/client/functions.h), behind what the user has written, on a line of its own. */
#include "router/filter_ast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AST_BLOCK_SIZE 4096

struct ast_block {
	struct ast_block *next;
	size_t used;
	_Alignas(16) unsigned char bytes[AST_BLOCK_SIZE];
};

struct parser {
	struct filter_ast *ast;
	struct filter_failure *failure;
	uint32_t at;
	uint32_t depth, tests;
};

static void *ast_alloc(struct filter_ast *ast, size_t size)
{
	struct ast_block *block = ast->blocks;
	void *result;

	size = (size + 15) & ~(size_t)15;
	if (!block || size > AST_BLOCK_SIZE - block->used) {
		block = calloc(1, sizeof(*block));
		if (!block)
			return NULL;
		block->next = ast->blocks;
		ast->blocks = block;
	}
	result = block->bytes + block->used;
	block->used += size;
	return result;
}

static char peek(const struct parser *parser, uint32_t ahead)
{
	uint64_t at = (uint64_t)parser->at + ahead;

	return at < parser->ast->size ? parser->ast->text[at] : '\0';
}

static bool at_end(const struct parser *parser)
{
	return parser->at >= parser->ast->size;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_field_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$';
}

static bool is_word_char(char c)
{
	return (unsigned char)c > ' ' && c != 0x7f && !strchr("\"'(){}<>=!~,&|", c);
}

static void skip_blanks(struct parser *parser)
{
	while (!at_end(parser) && is_blank(peek(parser, 0)))
		parser->at++;
}

/* Takes `token` if it stands here. */
static bool take(struct parser *parser, const char *token)
{
	size_t size = strlen(token);

	if (size > parser->ast->size - parser->at ||
		memcmp(parser->ast->text + parser->at, token, size) != 0)
		return false;
	parser->at += (uint32_t)size;
	return true;
}

static struct ast_piece here(const struct parser *parser, uint32_t size)
{
	return (struct ast_piece){ parser->at, size };
}

static struct ast_node *new_node(struct parser *parser, enum ast_kind kind)
{
	struct ast_node *node = ast_alloc(parser->ast, sizeof(*node));

	if (node) {
		node->kind = kind;
		node->piece = here(parser, 1);
	}
	return node;
}

/* ---- a test's parts ---- */

static int parse_field(struct parser *parser, struct ast_node *test)
{
	uint32_t start = parser->at;
	char c = peek(parser, 0);

	while (is_field_char(peek(parser, 0)))
		parser->at++;
	test->field = (struct ast_piece){ start, parser->at - start };
	if (test->field.size)
		return 0;
	if (at_end(parser))
		return filter_fail(
			parser->failure, here(parser, 1), "a comparison is missing at the end");
	if (c == ')')
		return filter_fail(
			parser->failure, here(parser, 1), "a comparison is missing before ')'");
	if (c == '"' || c == '\'')
		return filter_fail(parser->failure, here(parser, 1),
			"a field's name is expected here, without quotes");
	return filter_fail(parser->failure, here(parser, 1), "a field's name is expected here");
}

static int parse_suffix(struct parser *parser, struct ast_node *test)
{
	static const char *const names[] = {
		[AST_USTRING] = ".ustring", [AST_FUNCTION] = ".function"
	};
	uint32_t start = parser->at;
	struct filter_near near;
	struct ast_piece piece;

	if (peek(parser, 0) != '.')
		return 0;
	parser->at++;
	while (is_field_char(peek(parser, 0)) || peek(parser, 0) == '.')
		parser->at++;
	piece = (struct ast_piece){ start, parser->at - start };
	filter_near_begin(&near, parser->ast->text + start, piece.size);
	for (unsigned int i = AST_USTRING; i <= AST_FUNCTION; i++) {
		if (piece.size == strlen(names[i]) &&
			!memcmp(parser->ast->text + start, names[i], piece.size)) {
			test->suffix = (enum ast_suffix)i;
			return 0;
		}
		filter_near_offer(&near, names[i], strlen(names[i]));
	}
	(void)filter_fail(parser->failure, piece,
		"'%.*s' is nothing that a field has: .ustring and .function are",
		(int)(piece.size < 40 ? piece.size : 40), parser->ast->text + start);
	filter_near_end(&near, parser->failure);
	return -EINVAL;
}

static int parse_operator(struct parser *parser, struct ast_node *test)
{
	/* The longer one of two that begin alike stands first. */
	static const struct {
		const char *text;
		enum ast_op op;
	} operators[] = {
		{ "==", AST_EQ },
		{ "=~", AST_REGEX },
		{ "=", AST_LIKE },
		{ "!=", AST_NE },
		{ "!~", AST_NOT_GLOB },
		{ "<=", AST_LE },
		{ "<", AST_LT },
		{ ">=", AST_GE },
		{ ">", AST_GT },
		{ "~", AST_GLOB },
		{ "^=", AST_PREFIX },
		{ "$=", AST_SUFFIX },
		{ "*=", AST_SUBSTRING },
		{ "&", AST_BAND },
	};
	uint32_t start = parser->at;

	if (peek(parser, 0) == 'i' && peek(parser, 1) == 'n' && !is_field_char(peek(parser, 2))) {
		parser->at += 2;
		test->op = AST_IN;
		test->op_piece = (struct ast_piece){ start, 2 };
		return 0;
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (peek(parser, 0) == '&' && peek(parser, 1) == '&')
			break;
		if (take(parser, operators[i].text)) {
			test->op = operators[i].op;
			test->op_piece = (struct ast_piece){ start, parser->at - start };
			return 0;
		}
	}
	return filter_fail(parser->failure, here(parser, 1),
		"an operator is expected here: == != < <= > >= & ~ !~ = ^= $= *= =~ or in {...}");
}

/* A piece up to `end`, which is taken as well. */
static int parse_until(struct parser *parser, char end, const char *what, struct ast_value *value)
{
	uint32_t start = parser->at;
	const char *found = memchr(parser->ast->text + start, end, parser->ast->size - start);

	if (!found)
		return filter_fail(parser->failure, (struct ast_piece){ start - 1, 1 },
			"%s is missing its closing %c", what, end);
	value->piece = (struct ast_piece){ start, (uint32_t)(found - (parser->ast->text + start)) };
	parser->at = start + value->piece.size + 1;
	return 0;
}

static int parse_word(struct parser *parser, struct ast_value *value)
{
	uint32_t start = parser->at;

	if (peek(parser, 0) == '!')
		parser->at++;
	while (is_word_char(peek(parser, 0)) ||
		(peek(parser, 0) == '|' && parser->at > start && is_word_char(peek(parser, 1))))
		parser->at++;
	value->kind = AST_WORD;
	value->piece = (struct ast_piece){ start, parser->at - start };
	if (value->piece.size)
		return 0;
	if (at_end(parser))
		return filter_fail(
			parser->failure, here(parser, 1), "a value is missing at the end");
	if (peek(parser, 0) == '{')
		return filter_fail(
			parser->failure, here(parser, 1), "braces follow `in` or CPUS only");
	return filter_fail(parser->failure, here(parser, 1), "a value is expected here");
}

static int parse_value(struct parser *parser, struct ast_value **ret)
{
	struct ast_value *value = ast_alloc(parser->ast, sizeof(*value));
	char quote = peek(parser, 0);
	int error;

	if (!value)
		return -ENOMEM;
	if (quote == '"' || quote == '\'') {
		parser->at++;
		value->kind = AST_QUOTED;
		error = parse_until(parser, quote, "the string", value);
	} else if (take(parser, "CPUS{")) {
		value->kind = AST_CPUS;
		error = parse_until(parser, '}', "the list of CPUs", value);
	} else {
		error = parse_word(parser, value);
	}
	if (!error)
		*ret = value;
	return error;
}

static int parse_set(struct parser *parser, struct ast_node *test)
{
	struct ast_value **tail = &test->values;
	unsigned int count = 0;
	int error;

	if (!take(parser, "{"))
		return filter_fail(parser->failure, here(parser, 1),
			"a set of values in braces follows `in`: {1, 2}");
	do {
		if (++count > FILTER_SET_MAX) {
			(void)filter_fail(parser->failure, here(parser, 1),
				"more than %d values in one set", FILTER_SET_MAX);
			return -E2BIG;
		}
		skip_blanks(parser);
		error = parse_value(parser, tail);
		if (error)
			return error;
		tail = &(*tail)->next;
		skip_blanks(parser);
	} while (take(parser, ","));
	if (take(parser, "}"))
		return 0;
	return filter_fail(
		parser->failure, here(parser, 1), "the set goes on with a comma or ends with }");
}

static int parse_test(struct parser *parser, struct ast_node **ret)
{
	struct ast_node *test = new_node(parser, AST_TEST);
	int error;

	if (!test)
		return -ENOMEM;
	if (++parser->tests > FILTER_TESTS_MAX) {
		(void)filter_fail(parser->failure, here(parser, 1),
			"more than %d comparisons in one filter", FILTER_TESTS_MAX);
		return -E2BIG;
	}
	error = parse_field(parser, test);
	if (!error)
		error = parse_suffix(parser, test);
	if (error)
		return error;
	skip_blanks(parser);
	error = parse_operator(parser, test);
	if (error)
		return error;
	skip_blanks(parser);
	error = test->op == AST_IN ? parse_set(parser, test) : parse_value(parser, &test->values);
	if (error)
		return error;
	test->piece.size = parser->at - test->piece.at;
	*ret = test;
	return 0;
}

/* ---- the logic around tests ---- */

static int parse_or(struct parser *parser, struct ast_node **ret);

static int parse_not(struct parser *parser, struct ast_node **ret)
{
	struct ast_piece open = here(parser, 1);
	struct ast_node *node;
	int error;

	if (parser->depth >= FILTER_DEPTH_MAX) {
		(void)filter_fail(parser->failure, open,
			"more than %d parentheses and `!` inside each other", FILTER_DEPTH_MAX);
		return -E2BIG;
	}
	if (take(parser, "!")) {
		node = new_node(parser, AST_NOT);
		if (!node)
			return -ENOMEM;
		parser->depth++;
		skip_blanks(parser);
		error = parse_not(parser, &node->first);
		parser->depth--;
		if (!error)
			*ret = node;
		return error;
	}
	if (!take(parser, "("))
		return parse_test(parser, ret);
	parser->depth++;
	error = parse_or(parser, ret);
	parser->depth--;
	if (error)
		return error;
	if (!take(parser, ")")) {
		if (at_end(parser))
			return filter_fail(parser->failure, open, "this ( is never closed");
		return filter_fail(
			parser->failure, here(parser, 1), "&&, || or ) is expected here");
	}
	return 0;
}

/* One or more operands with `token` between them. Leaves the blanks behind the last one taken. */
static int parse_list(struct parser *parser, const char *token, enum ast_kind kind,
	int (*operand)(struct parser *, struct ast_node **), struct ast_node **ret)
{
	struct ast_node *first, *list, **tail;
	int error;

	skip_blanks(parser);
	error = operand(parser, &first);
	if (error)
		return error;
	skip_blanks(parser);
	*ret = first;
	if (!take(parser, token))
		return 0;
	list = new_node(parser, kind);
	if (!list)
		return -ENOMEM;
	list->first = first;
	tail = &first->next;
	do {
		skip_blanks(parser);
		error = operand(parser, tail);
		if (error)
			return error;
		tail = &(*tail)->next;
		skip_blanks(parser);
	} while (take(parser, token));
	*ret = list;
	return 0;
}

static int parse_and(struct parser *parser, struct ast_node **ret)
{
	return parse_list(parser, "&&", AST_AND, parse_not, ret);
}

static int parse_or(struct parser *parser, struct ast_node **ret)
{
	return parse_list(parser, "||", AST_OR, parse_and, ret);
}

/* ---- where functions lie ---- */

static int parse_place(struct parser *parser, struct ast_place **ret)
{
	struct ast_place *place = ast_alloc(parser->ast, sizeof(*place));
	int error;

	if (!place)
		return -ENOMEM;
	skip_blanks(parser);
	error = parse_word(parser, &place->name);
	skip_blanks(parser);
	if (!error && !take(parser, "="))
		return filter_fail(parser->failure, here(parser, 1),
			"a function and its addresses are expected here: NAME = LOW..HIGH");
	skip_blanks(parser);
	if (!error)
		error = parse_word(parser, &place->addresses);
	skip_blanks(parser);
	if (!error)
		*ret = place;
	return error;
}

static int parse_where(struct parser *parser)
{
	struct ast_place **tail = &parser->ast->places;
	int error;

	if (is_field_char(peek(parser, strlen("where"))) || !take(parser, "where"))
		return 0;
	do {
		if (++parser->tests > FILTER_TESTS_MAX) {
			(void)filter_fail(parser->failure, here(parser, 1),
				"more than %d comparisons and places of functions", FILTER_TESTS_MAX);
			return -E2BIG;
		}
		error = parse_place(parser, tail);
		if (error)
			return error;
		tail = &(*tail)->next;
	} while (take(parser, ","));
	return 0;
}

static int parse_filter(struct parser *parser)
{
	int error;

	skip_blanks(parser);
	if (at_end(parser)) {
		parser->ast->root = new_node(parser, AST_ALL);
		return parser->ast->root ? 0 : -ENOMEM;
	}
	error = parse_or(parser, &parser->ast->root);
	if (!error)
		error = parse_where(parser);
	if (error || at_end(parser))
		return error;
	if (peek(parser, 0) == ')')
		return filter_fail(parser->failure, here(parser, 1), "this ) was never opened");
	if (peek(parser, 0) == '&' || peek(parser, 0) == '|')
		return filter_fail(parser->failure, here(parser, 1),
			"&& or || is expected here, not %c alone", peek(parser, 0));
	return filter_fail(
		parser->failure, here(parser, 1), "&& or || is expected here, or the end");
}

/* A list hangs its operands on their `next`; an operand that is itself a list was made before. */
int filter_parse(
	const char *text, size_t size, struct filter_ast **ret, struct filter_failure *ret_failure)
{
	struct parser parser = { .failure = ret_failure };
	struct filter_ast *ast;
	int error;

	*ret_failure = (struct filter_failure){ .position = -1, .length = 1 };
	if (size > FILTER_TEXT_MAX) {
		(void)filter_fail(ret_failure, (struct ast_piece){ FILTER_TEXT_MAX, 1 },
			"a filter has at most %d bytes, this one has %zu", FILTER_TEXT_MAX, size);
		return -E2BIG;
	}
	if (memchr(text, '\0', size))
		return filter_fail(ret_failure,
			(struct ast_piece){ (uint32_t)strnlen(text, size), 1 },
			"a filter holds no NUL byte");
	ast = calloc(1, sizeof(*ast));
	if (!ast)
		return -ENOMEM;
	ast->text = malloc(size + 1);
	if (!ast->text) {
		free(ast);
		return -ENOMEM;
	}
	memcpy(ast->text, text, size);
	ast->text[size] = '\0';
	ast->size = size;
	parser.ast = ast;
	error = parse_filter(&parser);
	if (error) {
		filter_ast_release(ast);
		return error;
	}
	*ret = ast;
	return 0;
}

void filter_ast_release(struct filter_ast *ast)
{
	if (!ast)
		return;
	while (ast->blocks) {
		struct ast_block *block = ast->blocks;

		ast->blocks = block->next;
		free(block);
	}
	free(ast->text);
	free(ast);
}
