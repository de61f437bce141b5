using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text.RegularExpressions;
using System.Xml;
using NUnit.Framework;
using ScaleTrain;

/// <summary>The C# assembly covers the whole C ABI, and all public members are documented.</summary>
[TestFixture]
public class SurfaceTests {
  // C functions without a C# member, since C# has its own options and reports instead of structs, and Dispose instead of destroy functions.
  private static readonly Regex elsewhere = new Regex(@"^(st_\w+_init|st_\w+_destroy)$");
  private static readonly Assembly assembly = typeof(Context).Assembly;

  private static IEnumerable<string> Symbols() {
    string outline = File.ReadAllText(Path.Combine(Nets.SourceTree, "tests/golden/abi.txt"));
    return Regex.Matches(outline, @"\b(st_\w+)\(").Cast<Match>().Select(found => found.Groups[1].Value).Distinct();
  }

  private static HashSet<string> Said() {
    const BindingFlags all = BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    return new HashSet<string>(assembly.GetExportedTypes()
                                 .SelectMany(type => new MemberInfo[] { type }.Concat(type.GetMembers(all)))
                                 .SelectMany(member => member.GetCustomAttributes(typeof(OfCAttribute), false).Cast<OfCAttribute>())
                                 .SelectMany(of => of.Functions));
  }

  [Test]
  public void EveryFunctionOfCIsSomewhere() {
    HashSet<string> said = Said();
    Assert.Greater(said.Count, 90);
    Assert.IsEmpty(Symbols().Where(name => !said.Contains(name) && !elsewhere.IsMatch(name)).ToArray());
    Assert.IsEmpty(said.Except(Symbols()).ToArray());
  }

  [Test]
  public void WhatIsSaidToBeCalledIsCalled() {
    string library = Path.Combine(Environment.GetEnvironmentVariable("SCALETRAIN_NATIVE"), "libscaletrain_csharp.so");
    var nm = Process.Start(new ProcessStartInfo("nm", "-D --undefined-only " + library) { RedirectStandardOutput = true, UseShellExecute = false });
    var used = new HashSet<string>(Regex.Matches(nm.StandardOutput.ReadToEnd(), @"\bst_\w+").Cast<Match>().Select(found => found.Value));
    Assert.IsEmpty(Said().Except(used).Except(new[] { "st_graph_op" }).ToArray());
  }

  /// <summary>mcs compiles against Mono's class library. A member that another runtime lacks is noticed only when the runtime compiles the method.</summary>
  [Test]
  public void EveryMethodCompilesOnThisRuntime() {
    const BindingFlags all = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    var element = new[] { typeof(float).TypeHandle };
    int compiled = 0;
    foreach (Type type in assembly.GetTypes()) {
      bool isGeneric = type.IsGenericTypeDefinition;
      foreach (MethodBase method in type.GetMethods(all).Cast<MethodBase>().Concat(type.GetConstructors(all))) {
        if (method.IsAbstract || type.IsSubclassOf(typeof(Delegate)) || (method.Attributes & MethodAttributes.PinvokeImpl) != 0) continue;
        if (method.IsGenericMethodDefinition && isGeneric) continue;
        if (method.IsGenericMethodDefinition && method.GetGenericArguments()[0].GenericParameterAttributes.HasFlag(GenericParameterAttributes.ReferenceTypeConstraint)) continue;
        if (method.IsGenericMethodDefinition || isGeneric) RuntimeHelpers.PrepareMethod(method.MethodHandle, element);
        else RuntimeHelpers.PrepareMethod(method.MethodHandle);
        ++compiled;
      }
    }
    Assert.Greater(compiled, 800);
  }

  [Test]
  public void OnlyTheTypedLayerIsPublic() { Assert.IsEmpty(assembly.GetExportedTypes().Where(type => type.Namespace != "ScaleTrain").ToArray()); }

  [Test]
  public void EverythingPublicIsDocumented() {
    var text = new XmlDocument();
    text.Load(Path.Combine(Environment.GetEnvironmentVariable("SCALETRAIN_NATIVE"), "ScaleTrain.xml"));
    var documented = new HashSet<string>(text.SelectNodes("//member").Cast<XmlNode>().Select(member => Regex.Replace(member.Attributes["name"].Value, @"\(.*|``\d+", "")));
    const BindingFlags own = BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    var missing = new List<string>();
    foreach (Type type in assembly.GetExportedTypes()) {
      if (!documented.Contains("T:" + type.FullName)) missing.Add(type.FullName);
      if (type.IsSubclassOf(typeof(Delegate))) continue;
      foreach (PropertyInfo property in type.GetProperties(own))
        if (!documented.Contains("P:" + type.FullName + "." + property.Name)) missing.Add(type.FullName + "." + property.Name);
      foreach (MethodInfo method in type.GetMethods(own).Where(one => !one.IsSpecialName))
        if (!documented.Contains("M:" + type.FullName + "." + method.Name)) missing.Add(type.FullName + "." + method.Name);
    }
    Assert.IsEmpty(missing);
  }

  [Test]
  public void EveryCallbackIsAStaticMethodMarkedForAheadOfTimeCompilers() {
    const BindingFlags all = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    Delegate[] table = (Delegate[])assembly.GetType("ScaleTrain.Bridge").GetField("table", all).GetValue(null);
    Assert.AreEqual(17, table.Length);
    foreach (Delegate entry in table) {
      Assert.IsTrue(entry.Method.IsStatic, entry.Method.Name);
      Assert.IsTrue(entry.Method.GetCustomAttributes(false).Any(mark => mark.GetType().Name == "MonoPInvokeCallbackAttribute"), entry.Method.Name);
    }
    // There are no other callbacks: no P/Invoke takes a delegate.
    var functions = assembly.GetTypes().SelectMany(type => type.GetMethods(all)).Where(method => (method.Attributes & MethodAttributes.PinvokeImpl) != 0).ToArray();
    Assert.Greater(functions.Length, 100);
    Assert.IsEmpty(functions.Where(method => method.GetParameters().Any(one => typeof(Delegate).IsAssignableFrom(one.ParameterType))).ToArray());
  }
}
