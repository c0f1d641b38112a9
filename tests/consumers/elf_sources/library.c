/* A library with a function in two versions, one chosen at run time, static namesakes, and data. */
#define VISIBLE __attribute__((visibility("default"), noinline))

__attribute__((visibility("default"))) int data_symbol = 4;

VISIBLE int shared_function(int a);
VISIBLE int shared_function(int a)
{
	return a + data_symbol++;
}

VISIBLE int versioned_old(int a);
VISIBLE int versioned_new(int a);
VISIBLE int versioned_old(int a)
{
	return a + 10 * data_symbol++;
}
VISIBLE int versioned_new(int a)
{
	return a + 20 * data_symbol++;
}
__asm__(".symver versioned_old, versioned@LIB_1");
__asm__(".symver versioned_new, versioned@@LIB_2");

static int (*choose(void))(int)
{
	return shared_function;
}
VISIBLE int chosen(int a) __attribute__((ifunc("choose")));
