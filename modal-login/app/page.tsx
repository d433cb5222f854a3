import { App } from "@/components/app";
import { settings } from "@/lib/settings";

// Settings are those of the running server, not of the build; and the nonce of scripts is new each time.
export const dynamic = "force-dynamic";

export default function Page() {
  const { chainId, sessionDays } = settings();
  return (
    <main>
      <header>
        <p className="brand">
          code<span>zero</span>
        </p>
      </header>
      <App chainId={chainId} sessionDays={sessionDays} />
    </main>
  );
}
