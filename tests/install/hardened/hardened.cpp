// Has what releases protect: a container, a buffer on the stack and a function of glibc that fills it.
#include <cstring>
#include <vector>

int main(int count, char** arguments) {
  char name[64] = {};
  std::memcpy(name, arguments[0], std::strlen(arguments[0]));
  std::vector<int> numbers(3);
  return numbers[static_cast<std::size_t>(count - 1)] + (name[0] == 0 ? 1 : 0);
}
