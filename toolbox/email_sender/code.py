# SPDX-License-Identifier: Apache-2.0
# Email Sender: one message over SMTP, never without TLS.
import email.message
import smtplib
import ssl

def refused(why, host):
    return {"success": False, "error": f"{host} cannot be reached: {why}; the tool needs the grant "
                                       f"allowed_hosts: {host}", "grant": {"allowed_hosts": [host]}}


def send(inputs):
    message = email.message.EmailMessage()
    message["From"] = inputs.get("from") or inputs.get("username") or inputs["to"]
    message["To"] = inputs["to"]
    message["Subject"] = inputs["subject"]
    message.set_content(inputs["body"])
    with smtplib.SMTP(inputs["smtp_host"], int(inputs.get("smtp_port", 587)), timeout=20) as server:
        server.starttls(context=ssl.create_default_context())
        if inputs.get("username"):
            server.login(inputs["username"], inputs.get("password", ""))
        server.send_message(message)
    return f"sent to {inputs['to']}"


try:
    result = {"success": True, "message": send(inputs)}
except (KeyError, ValueError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
except smtplib.SMTPException as why:
    result = {"success": False, "error": f"the mail server said: {why}"}
except OSError as why:
    result = refused(why, inputs["smtp_host"])
return result
