/* Two static functions of one name, from one source that is compiled twice. */
__attribute__((noinline, used)) static int twin(int a)
{
	return a + NUMBER;
}

int CALLER(int a);
int CALLER(int a)
{
	return twin(a);
}
