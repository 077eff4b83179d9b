/** Remove `notice=…` from the address, so that a reload does not show the notice again. */
export function forgetNotice() {
  const query = location.search.slice(1).split("&").filter(Boolean);
  const kept = query.filter((each) => !each.startsWith("notice="));
  if (kept.length < query.length) {
    history.replaceState(history.state, "", location.pathname + (kept.length ? `?${kept.join("&")}` : "") + location.hash);
  }
}
