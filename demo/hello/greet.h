/* A greeting. */
const char *greet(void);
