"""Signing in, as the client of the conformance suite does it in the scenarios `auth/*`.

Their server requires a token. This module does what a user would do: accept when the workbench asks to open an address,
or run the command that it names, and open the address in a browser.
"""

import re
import shlex
import subprocess
import threading
import urllib.error
import urllib.request

# The suite expects this address. Nothing is there; only an authorization server would request it.
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
# In these the server or its authority cannot be trusted, or never has enough: the workbench must give up.
REFUSED = {
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
}
# No scenario needs more sign-ins than this.
MOST_SIGN_INS = 3
SECONDS = 15


def settings(scenario, context):
    """What the user knows and has written into the configuration, as the value of `oauth`."""
    if scenario == "auth/basic-cimd":
        return {"clientMetadataUrl": CLIENT_METADATA}
    names = {
        "clientId": "client_id",
        "clientSecret": "client_secret",
        "privateKey": "private_key_pem",
        "signingAlgorithm": "signing_algorithm",
    }
    known = {key: context[name] for key, name in names.items() if name in context}
    if scenario.startswith("auth/client-credentials-"):
        known["grant"] = "client_credentials"
    return known


class Browser:
    """Opens an address while the client goes on, and follows where it leads."""

    def __init__(self, address):
        self.page = None
        self.thread = threading.Thread(target=self.visit, args=[address])
        self.thread.start()

    def visit(self, address):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            answer = opener.open(address, timeout=SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        self.page = answer.read().decode()

    def last_page(self):
        """What is shown in the end, which must be something."""
        self.thread.join()
        return self.page


def login(program, words, environment):
    """Runs the command that the workbench names in its words, and opens the address that it prints. Gives whether it
    ended well."""
    named = re.search(r"`mcp-workbench ([^`]*login [^`]+)`", words)
    if not named:
        raise LookupError(f"no command to sign in is named: {words}")
    command = [program, *shlex.split(named[1]), "--no-browser"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        browser = None
        for line in process.stderr:
            if browser is None and (address := re.search(r"https?://\S+", line)):
                browser = Browser(address[0])
        return process.wait() == 0
