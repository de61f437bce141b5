// Runs NUnit 2 tests on .NET 8, where NUnit 2's own runner does not work. Supports the attributes that the tests use: TestFixture, SetUp, TearDown,
// Test, TestCase, Ignore.
// Runner.exe TESTS.dll FIXTURE,FIXTURE... REPORT.xml
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Xml;
using NUnit.Framework;

static class Runner {
  static int Main(string[] arguments) {
    Assembly tests = Assembly.LoadFrom(arguments[0]);
    int failed = 0;
    using (XmlWriter report = XmlWriter.Create(arguments[2])) {
      report.WriteStartElement("testsuite");
      foreach (Type fixture in arguments[1].Split(',').Select(name => tests.GetType(name, true)))
        foreach (MethodInfo test in fixture.GetMethods())
          foreach (object[] values in CasesOf(test))
            if (!Passes(fixture, test, values, report)) ++failed;
      report.WriteEndElement();
    }
    return failed == 0 ? 0 : 1;
  }

  static IEnumerable<object[]> CasesOf(MethodInfo test) {
    if (test.IsDefined(typeof(IgnoreAttribute), true)) yield break;
    if (test.IsDefined(typeof(TestAttribute), true)) yield return new object[0];
    foreach (TestCaseAttribute one in test.GetCustomAttributes(typeof(TestCaseAttribute), true)) yield return one.Arguments;
  }

  static bool Passes(Type fixture, MethodInfo test, object[] values, XmlWriter report) {
    string name = values.Length == 0 ? test.Name : test.Name + "(" + string.Join(",", values) + ")";
    var clock = Stopwatch.StartNew();
    Exception failure = null;
    object instance = Activator.CreateInstance(fixture);
    try {
      Call<SetUpAttribute>(instance);
      test.Invoke(instance, values);
    } catch (TargetInvocationException thrown) { failure = thrown.InnerException; } finally {
      try { Call<TearDownAttribute>(instance); } catch (TargetInvocationException thrown) { failure = failure ?? thrown.InnerException; }
    }
    if (failure is SuccessException) failure = null;
    report.WriteStartElement("testcase");
    report.WriteAttributeString("classname", fixture.FullName);
    report.WriteAttributeString("name", name);
    report.WriteAttributeString("time", clock.Elapsed.TotalSeconds.ToString(System.Globalization.CultureInfo.InvariantCulture));
    if (failure != null) report.WriteElementString("failure", failure.ToString());
    report.WriteEndElement();
    Console.WriteLine((failure == null ? "passed " : "FAILED ") + name + (failure == null ? "" : "\n" + failure));
    return failure == null;
  }

  static void Call<TAttribute>(object instance) {
    foreach (MethodInfo method in instance.GetType().GetMethods().Where(one => one.IsDefined(typeof(TAttribute), true))) method.Invoke(instance, null);
  }
}
