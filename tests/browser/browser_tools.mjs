/// How Chromium is started.
export const kArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/// CPU time in ms that the page's main thread spends on `work`, an async function called with `argument` in the page.
/// Unlike wall time it does not grow when other processes are busy.
export async function page_cpu_ms(page, work, argument) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const used = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * metrics.find(({ name }) => name === "TaskDuration").value;
  };
  const before = await used();
  await page.evaluate(work, argument);
  const spent = (await used()) - before;
  await session.detach();
  return spent;
}

/// Until two frames have been drawn: the charts draw in the first after a change.
export async function settle(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));
}
