// C++: namespaces, templates, constructors, lambdas, local classes, operators, exceptions.
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {

volatile long sink;

class shape {
public:
	explicit shape(std::string name) : name_(std::move(name)) { sink++; }
	virtual ~shape() { sink--; }
	virtual double area() const = 0;
	const std::string &name() const { return name_; }

private:
	std::string name_;
};

class square : public shape {
public:
	explicit square(double side) : shape("square"), side_(side) {}
	double area() const override { return side_ * side_; }
	square operator+(const square &other) const { return square(side_ + other.side_); }

private:
	double side_;
};

template <typename T, int N> __attribute__((noinline)) T sum(const std::vector<T> &values)
{
	T total = N;

	for (const T &value : values)
		total += value;
	return total;
}

namespace {

__attribute__((noinline)) long hidden(long x)
{
	struct local {
		static __attribute__((noinline)) long twice(long y) { sink += y; return y * 2; }
	};
	return local::twice(x) + sink;
}

} // namespace

__attribute__((noinline)) long with_lambda(long n)
{
	std::vector<long> values;
	auto add = [&values](long v) __attribute__((noinline)) { values.push_back(v); };

	for (long i = 0; i < n; i++)
		add(hidden(i));
	if (values.empty())
		throw std::runtime_error("nothing");
	return sum<long, 7>(values);
}

} // namespace shapes

int main(int argc, char **)
{
	try {
		std::unique_ptr<shapes::shape> s = std::make_unique<shapes::square>(argc);
		shapes::square two = shapes::square(1) + shapes::square(argc);

		return static_cast<int>(shapes::with_lambda(argc) + s->area() + two.area());
	} catch (const std::exception &e) {
		return static_cast<int>(std::string(e.what()).size());
	}
}
