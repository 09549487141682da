"""Which mistakes sites.py finds in a source."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import sites  # noqa: E402


def mutants(source, kind):
    """The sources that mistakes of a kind make."""
    return [site.apply(source) for site in sites.sites(source) if site.kind == kind]


class SitesTest(unittest.TestCase):

    def test_operators(self):
        self.assertEqual(mutants("x = a < b;", "comparison"), ["x = a >= b;"])
        self.assertEqual(mutants("x = a < b;", "boundary"), ["x = a <= b;"])
        self.assertEqual(mutants("x = a == b;", "boundary"), [])
        self.assertEqual(mutants("x = a * b - c;", "sign"), ["x = a / b - c;", "x = a * b + c;"])
        self.assertEqual(mutants("x += a;", "sign"), ["x -= a;"])
        self.assertEqual(mutants("x = a &&\n    b || c;", "logic"), ["x = a ||\n    b || c;", "x = a &&\n    b && c;"])
        self.assertEqual(mutants("if (!a) f(-b, c - d);", "negation"), ["if (a) f(-b, c - d);", "if (!a) f(b, c - d);"])
        self.assertEqual(mutants("x[0] = 10;", "integer"), ["x[1] = 10;", "x[0] = 11;", "x[0] = 9;"])
        self.assertEqual(mutants("x = true;", "boolean"), ["x = false;"])

    def test_what_is_no_operator(self):
        for source in ("std::vector<int> x;", "int* x;", "void F(T&& x);", "a->b();", "s << t;", "x = 1e-5;", "kInt8",
                       "x = 1'000'000;", "x = 0x10;"):
            self.assertEqual([site for site in sites.sites(source) if site.kind != "statement"], [], source)

    def test_statements(self):
        source = ("void F() {\n  int a = 1;\n  G(a);\n  // G(a);\n  if (a) return;\n  x.y[2] = H(\n      a);\n"
                  "  FUSELAGE_CHECK(a);\n  return;\n}\n")
        found = [site for site in sites.sites(source) if site.kind == "statement"]
        self.assertEqual([source[site.begin:site.end].strip() for site in found], ["G(a)", "if (a) return"])

    def test_what_holds_no_code(self):
        for source in ('// a < 1', '/* a < 1\n */', 'f("a < 1 \\" 2");', "f('1');", "#if 1 < 2", 'R"(a < "1")"'):
            self.assertEqual(sites.sites(source), [], source)


if __name__ == "__main__":
    unittest.main()
