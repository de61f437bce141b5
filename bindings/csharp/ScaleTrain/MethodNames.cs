using System;
using System.Collections.Generic;
using System.Reflection;
using System.Text.RegularExpressions;

namespace ScaleTrain {

/// <summary>The library's errors name C functions as ways out; here they name the members that call them.</summary>
internal static class MethodNames {
  private static readonly Regex function = new Regex("(?<![\\w/.\"-])st_\\w+(?![\\w/\"-])");
  private static readonly Lazy<Dictionary<string, string>> names = new Lazy<Dictionary<string, string>>(Make);

  /// <summary>The message with Trainer.Forward for st_trainer_forward.</summary>
  internal static string In(string message) {
    if (!message.Contains("st_")) return message;
    return function.Replace(message, found => names.Value.TryGetValue(found.Value, out string name) ? name : found.Value);
  }

  private static Dictionary<string, string> Make() {
    const BindingFlags all = BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    var made = new Dictionary<string, string>();
    foreach (Type type in typeof(MethodNames).Assembly.GetExportedTypes())
      foreach (MemberInfo member in type.GetMembers(all))
        foreach (OfCAttribute of in member.GetCustomAttributes(typeof(OfCAttribute), false)) {
          string name = member is ConstructorInfo ? "new " + type.Name : type.Name + "." + member.Name;
          foreach (string called in of.Functions)
            if (!made.TryGetValue(called, out string other) || IsBefore(name, other)) made[called] = name;
        }
    return made;
  }

  // Prefers the shortest name: reflection lists members in no fixed order.
  private static bool IsBefore(string a, string b) { return a.Length < b.Length || a.Length == b.Length && string.CompareOrdinal(a, b) < 0; }
}

}
